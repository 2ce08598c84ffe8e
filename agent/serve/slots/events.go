package slots

import (
	"time"

	v0 "akri.sh/akri/api/v0"
)

// Event is something this node noticed. The set is closed: each event knows its
// transition.
type Event interface{ apply(*Machine) []Command }

// Call names one request of the kubelet until it is answered.
type Call uint64

// Generation counts what touched slots: calls naming them and settled patches.
// An observation of pods carries the generation at which it began, and says
// nothing about slots touched later.
type Generation uint64

// Ref is a slot of an Instance.
type Ref struct {
	Instance string
	Slot     int
}

// String is the key of the slot in deviceUsage.
func (r Ref) String() string { return v0.SlotName(r.Instance, r.Slot) }

// Record is what an Instance said at one moment.
type Record struct {
	// Version orders the records of the API server; a record older than one
	// seen already is ignored.
	Version uint64
	// Usage holds the owners; a slot without entry is free.
	Usage map[int]v0.Owner
}

// Outcome is what became of a patch.
type Outcome int

const (
	// Written: the record is as the patch wanted it.
	Written Outcome = iota
	// Refused: the patch was not and will not be applied.
	Refused
	// Unknown: nobody answered. The patch may have been applied, or may yet be.
	Unknown
)

// Ticked says how long the owner has been running. Owners send it before every
// other event and when [Machine.Deadline] has come.
type Ticked struct{ Now time.Duration }

// DevicePublished says that this node reaches a device, or that something about
// it changed.
type DevicePublished struct {
	Instance string
	// Shared is false for a device that no other node can reach.
	Shared   bool
	Capacity int
	Online   bool
}

// DeviceWithdrawn says that this node no longer offers the device.
type DeviceWithdrawn struct{ Instance string }

// InstanceRecorded says what the API server holds.
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

// CallExpired says that the deadline of a call has come. A call answered before
// is not affected.
type CallExpired struct{ Call Call }

// PreferenceAsked is the kubelet's question which of the slots it has at hand it
// should give.
type PreferenceAsked struct {
	Call      Call
	Instance  string
	Available []int
	Must      []int
	Size      int
}

// ClaimSettled answers a [Claim].
type ClaimSettled struct {
	Instance string
	Slots    []int
	Outcome  Outcome
	// Record is what was read or written last; nil if nobody answered.
	Record *Record
}

// ReleaseSettled answers a [Release].
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

// PodsWitnessed says what the kubelet and its pods tell about slots.
type PodsWitnessed struct {
	// Since and Began are [Machine.Generation] and the time at the beginning of
	// the observation.
	Since Generation
	Began time.Duration
	// Held are slots that a container on this node has.
	Held []Ref
	// Ended are slots that no container on this node has.
	Ended []Ref
}
