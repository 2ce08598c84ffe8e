package slots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// Command is an action that this node should take. The commands of one step are
// carried out in order. None of them may block the next event.
type Command interface {
	command()
	// String returns the command as scenario scripts show it.
	String() string
}

// Reasons to refuse a call. The kubelet shows the text in the Pod's status.
var (
	// ErrTaken means that another node, or another resource of this node, has the
	// slot.
	ErrTaken = errors.New("the slot is in use elsewhere")
	// ErrNoSlot means that the slot does not exist, or no longer exists.
	ErrNoSlot = errors.New("the device has no such slot")
	// ErrFull means that as many slots have owners as the capacity allows. After a
	// shrink, these may be slots beyond the capacity.
	ErrFull = errors.New("all slots that the device's capacity allows are in use")
	// ErrTooFew means that a container requests more slots of a group than there are
	// different Instances with a slot for it.
	ErrTooFew = errors.New("too few devices have a free slot")
	// ErrGone means that this node no longer offers the device.
	ErrGone = errors.New("the device is gone")
	// ErrUnavailable means that the API server did not confirm the claim.
	ErrUnavailable = errors.New("the claim could not be recorded in the API server")
	// ErrDeadline means that the claim took too long.
	ErrDeadline = errors.New("the claim was not confirmed in time")
)

// Answer ends a call of [AllocateRequested].
type Answer struct {
	Call Call
	// Slots are what the container gets, if Err is nil: one slot per ID, in the order
	// of the IDs.
	Slots []Ref
	// Err is nil when the container may have the slots.
	Err error
}

// Claim requests one patch that gives owners to free slots of an Instance. Each owner
// is this node, through the Instance's resource or the group's. A slot that already
// has the owner keeps it. Its result is [ClaimSettled].
type Claim struct {
	Instance string
	Owners   map[int]v0.Owner
	// InUse means that containers have the slots already, so the capacity does not matter.
	InUse bool
}

// Release requests one patch that frees slots which have the given owners. The patch
// must test the version of the Instance it was made for, so that a delayed one cannot
// free a slot that was allocated again. Its result is [ReleaseSettled].
type Release struct {
	Instance string
	Owners   map[int]v0.Owner
}

// Probe requests a dry run of a patch, to find out whether claims of an Instance's
// slots can be written again. Its result is [ProbeSettled].
type Probe struct{ Instance string }

// Advertise replaces the kubelet's list of a resource.
type Advertise struct {
	Resource Resource
	List     []Health
}

// Health is one ID in a list. The kubelet gives an unhealthy ID to no new
// container; the containers that have it are not affected.
type Health struct {
	// ID is the number of a slot, or a virtual ID.
	ID      int
	Healthy bool
}

// Withdraw ends a resource. Its list has had no healthy ID, and no call has named its
// IDs, for [Quiet].
type Withdraw struct{ Resource Resource }

// Report tells users what is wrong with a slot.
type Report struct {
	Slot Ref
	// Conflict describes a conflict that this node does not resolve itself. If it is empty,
	// somebody has emptied the record of a slot that a container of this node has, and a
	// [Claim] writes the owner again.
	Conflict string
}

func (Answer) command()    {}
func (Claim) command()     {}
func (Release) command()   {}
func (Probe) command()     {}
func (Advertise) command() {}
func (Withdraw) command()  {}
func (Report) command()    {}

func (c Answer) String() string {
	if c.Err != nil {
		return fmt.Sprintf("answer %d: refused, %v", c.Call, c.Err)
	}
	words := make([]string, 0, len(c.Slots))
	for _, ref := range c.Slots {
		words = append(words, ref.String())
	}
	return fmt.Sprintf("answer %d: %s", c.Call, strings.Join(words, " "))
}

func (c Claim) String() string {
	return fmt.Sprintf("claim %s: %s", c.Instance, owners(c.Owners))
}

func (c Release) String() string {
	return fmt.Sprintf("release %s: %s", c.Instance, owners(c.Owners))
}

func (c Probe) String() string { return "probe " + c.Instance }

func (c Advertise) String() string {
	words := make([]string, 0, len(c.List))
	for _, h := range c.List {
		sign := "+"
		if !h.Healthy {
			sign = "-"
		}
		words = append(words, fmt.Sprintf("%s%d", sign, h.ID))
	}
	return fmt.Sprintf("advertise %s: %s", c.Resource.Name, strings.Join(words, " "))
}

func (c Withdraw) String() string { return "withdraw " + c.Resource.Name }

func (c Report) String() string {
	if c.Conflict == "" {
		return fmt.Sprintf("restore %s", c.Slot)
	}
	return fmt.Sprintf("report %s: %s", c.Slot, c.Conflict)
}

// owners prints slots with their owners; the virtual ID follows the slot.
func owners(slots map[int]v0.Owner) string {
	words := make([]string, 0, len(slots))
	for _, s := range slices.Sorted(maps.Keys(slots)) {
		word := fmt.Sprint(s)
		if id := slots[s].VirtualID; id != "" {
			word += "=C:" + id
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
