package slots

import (
	"strconv"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// Event is something this node observed. The set is closed: each event implements
// its transition.
type Event interface{ apply(*Machine) []Command }

// Call identifies a request of the kubelet until it is answered.
type Call uint64

// Generation counts the calls that name slots, and settled patches. An observation of
// Pods carries the generation at which it began, and does not apply to slots that one of
// them named later.
type Generation uint64

// Resource is a resource of this node, akri.sh/NAME.
type Resource struct {
	// Name is the name of an Instance or, for a group, of a Configuration.
	Name string
	// Group means that the resource stands for all Instances of a Configuration. Its
	// IDs are virtual: the machine maps each to a slot when it is allocated.
	Group bool
}

// ID returns the kubelet's ID of a slot of an Instance, INSTANCE-N, or of a group, which is a
// plain number. These are the original Akri's.
func (r Resource) ID(number int) string {
	if r.Group {
		return strconv.Itoa(number)
	}
	return v0.SlotName(r.Name, number)
}

// Number is the inverse of [Resource.ID].
func (r Resource) Number(id string) (number int, ok bool) {
	if r.Group {
		return virtualNumber(id)
	}
	number, err := v0.ParseSlotName(r.Name, id)
	return number, err == nil
}

// Use is an ID of a resource that a container has, as the kubelet lists it.
type Use struct {
	// Resource is the name of an Instance or of a Configuration.
	Resource string
	// ID is the name of a slot ([v0.SlotName]) or a virtual ID.
	ID string
}

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
	// Configuration is the name of the Instance's Configuration; "" if it is not known.
	Configuration string
	// Nodes are those that see the device, in any order.
	Nodes []string
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
	// Configuration is the name of the Instance's Configuration.
	Configuration string
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

// AllocateRequested is the kubelet's request to give IDs of a resource to one
// container: slots of an Instance, or virtual IDs of a group.
type AllocateRequested struct {
	Call     Call
	Resource Resource
	IDs      []int
}

// CallExpired reports that the deadline of a call has passed. It does not affect a
// call that was answered.
type CallExpired struct{ Call Call }

// Result is what became of a patch.
type Result struct {
	Outcome Outcome
	// Record is the record last read or written; nil if there was no response.
	Record *Record
	// Gone reports that the Instance does not exist.
	Gone bool
	// Kept reports that a claim found slots with their owner, so that no patch, or none of
	// known outcome, gave it to them.
	Kept bool
	// Tried is the latest version for which a patch of unknown outcome was sent.
	Tried uint64
}

// ClaimSettled is the result of a [Claim].
type ClaimSettled struct {
	Instance string
	Slots    []int
	Result
}

// ReleaseSettled is the result of a [Release].
type ReleaseSettled struct {
	Instance string
	Slots    []int
	Result
}

// ProbeSettled is the result of a [Probe]. Its record is one that was read.
type ProbeSettled struct {
	Instance string
	Result
}

// PodsObserved is an observation of the kubelet and its Pods.
type PodsObserved struct {
	// Since and Began are [Machine.Generation] and the time at the beginning of
	// the observation.
	Since Generation
	Began time.Duration
	// Listed are the IDs that containers on this node have.
	Listed []Use
	// Open are the resources whose list may be incomplete. An ID of another resource
	// that is not listed is not used by any container.
	Open []string
	// Unaccounted are the open resources with IDs that a container may have although the
	// kubelet considers them free.
	Unaccounted []string
}
