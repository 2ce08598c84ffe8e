package slots

import (
	"errors"
	"fmt"
	"strings"
)

// Command is an action that this node should take. The commands of one step are
// carried out in order. None of them may block the next event.
type Command interface {
	command()
	// String returns the command as scenario scripts show it.
	String() string
}

// Reasons to refuse a call. The kubelet shows the text in the pod's status.
var (
	// ErrTaken means that another node, or another resource of this node, has the
	// slot.
	ErrTaken = errors.New("the slot is in use elsewhere")
	// ErrNoSlot means that the slot does not exist, or no longer exists.
	ErrNoSlot = errors.New("the device has no such slot")
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
	// Err is nil when the container may have the slots.
	Err error
}

// Suggest ends a call of [PreferenceAsked].
type Suggest struct {
	Call  Call
	Slots []int
}

// Claim requests one patch that makes this node the owner of free slots. Its result
// is [ClaimSettled].
type Claim struct {
	Instance string
	Slots    []int
}

// Release requests one patch that frees slots of this node. The patch must test the
// version of the Instance it was made for, so that a delayed one cannot free a slot
// that was allocated again. Its result is [ReleaseSettled].
type Release struct {
	Instance string
	Slots    []int
}

// Advertise replaces the kubelet's list of an Instance's resource.
type Advertise struct {
	Instance string
	List     []Health
}

// Health is one slot in a list. The kubelet gives an unhealthy slot to no new
// container; the containers that have it are not affected.
type Health struct {
	Slot    int
	Healthy bool
}

// Withdraw ends the resource of an Instance. Its list has had no healthy slot, and no
// call has named its slots, for [Quiet].
type Withdraw struct{ Instance string }

// Report describes a contradiction that this node does not resolve itself.
type Report struct {
	Slot Ref
	What string
}

func (Answer) command()    {}
func (Suggest) command()   {}
func (Claim) command()     {}
func (Release) command()   {}
func (Advertise) command() {}
func (Withdraw) command()  {}
func (Report) command()    {}

func (c Answer) String() string {
	if c.Err != nil {
		return fmt.Sprintf("answer %d: refused, %v", c.Call, c.Err)
	}
	return fmt.Sprintf("answer %d: ok", c.Call)
}

func (c Suggest) String() string {
	return fmt.Sprintf("suggest %d: %s", c.Call, numbers(c.Slots))
}

func (c Claim) String() string {
	return fmt.Sprintf("claim %s: %s", c.Instance, numbers(c.Slots))
}

func (c Release) String() string {
	return fmt.Sprintf("release %s: %s", c.Instance, numbers(c.Slots))
}

func (c Advertise) String() string {
	words := make([]string, 0, len(c.List))
	for _, h := range c.List {
		sign := "+"
		if !h.Healthy {
			sign = "-"
		}
		words = append(words, fmt.Sprintf("%s%d", sign, h.Slot))
	}
	return fmt.Sprintf("advertise %s: %s", c.Instance, strings.Join(words, " "))
}

func (c Withdraw) String() string { return "withdraw " + c.Instance }

func (c Report) String() string { return fmt.Sprintf("report %s: %s", c.Slot, c.What) }

func numbers(slots []int) string {
	words := make([]string, 0, len(slots))
	for _, slot := range slots {
		words = append(words, fmt.Sprint(slot))
	}
	return strings.Join(words, " ")
}
