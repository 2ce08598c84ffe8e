package slots

import (
	"time"

	v0 "akri.sh/akri/api/v0"
)

// Event is something this node observed. The set is closed: each event implements
// its transition.
type Event interface{ apply(*Machine) []Command }

// Call identifies a request of the kubelet until it is answered.
type Call uint64

// Generation counts the calls that name slots, and settled patches. An observation of
// pods carries the generation at which it began, and does not apply to slots touched
// later.
type Generation uint64

// Ref is a slot of an Instance.
type Ref struct {
	Instance string
	Slot     int
}

// String is the key of the slot in deviceUsage.
func (r Ref) String() string { return v0.SlotName(r.Instance, r.Slot) }

// Record is the content of an Instance at one version.
type Record struct {
	// Version orders the records of the API server. An older record than the latest
	// is ignored.
	Version uint64
	// Usage are the owners. A slot without an entry is free.
	Usage map[int]v0.Owner
}

// Outcome is the result of a patch.
type Outcome int

const (
	// Written means that the record is as desired.
	Written Outcome = iota
	// Refused means that the patch was not and will not be applied.
	Refused
	// Unknown means that there was no response. The patch may have been applied, or
	// may still be applied.
	Unknown
)

// Ticked reports how long the caller has been running. The caller sends it before
// every other event and at [Machine.Deadline].
type Ticked struct{ Now time.Duration }

// DevicePublished reports that this node can reach a device, or that the device
// changed.
type DevicePublished struct {
	Instance string
	// Shared is false for a device that no other node can reach.
	Shared   bool
	Capacity int
	Online   bool
}

// DeviceWithdrawn reports that this node no longer offers the device.
type DeviceWithdrawn struct{ Instance string }

// InstanceRecorded reports the Instance in the API server.
type InstanceRecorded struct {
	Instance string
	Record   Record
}

// InstanceLeft reports that the Instance no longer has this node's label, so its
// changes are no longer seen. The node still releases the slots it owns when their
// containers end.
type InstanceLeft struct{ Instance string }

// InstanceDeleted reports that the Instance no longer exists.
type InstanceDeleted struct {
	Instance string
	// Version orders the deletion among the records.
	Version uint64
}

// AllocateRequested is the kubelet's request to give slots to one container.
type AllocateRequested struct {
	Call     Call
	Instance string
	Slots    []int
}

// CallExpired reports that the deadline of a call has passed. It does not affect a
// call that was answered.
type CallExpired struct{ Call Call }

// PreferenceAsked is the kubelet's request to choose among its available slots.
type PreferenceAsked struct {
	Call      Call
	Instance  string
	Available []int
	Must      []int
	Size      int
}

// ClaimSettled is the result of a [Claim].
type ClaimSettled struct {
	Instance string
	Slots    []int
	Outcome  Outcome
	// Record is the record last read or written; nil if there was no response.
	Record *Record
}

// ReleaseSettled is the result of a [Release].
type ReleaseSettled struct {
	Instance string
	Slots    []int
	Outcome  Outcome
	Record   *Record
	// Tried is the latest version for which a patch of unknown outcome was sent.
	Tried uint64
	// Gone reports that the Instance does not exist.
	Gone bool
}

// PodsObserved is an observation of the kubelet and its pods.
type PodsObserved struct {
	// Since and Began are [Machine.Generation] and the time at the beginning of
	// the observation.
	Since Generation
	Began time.Duration
	// Held are slots that a container on this node has.
	Held []Ref
	// Ended are slots that no container on this node has.
	Ended []Ref
}
