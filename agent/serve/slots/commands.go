package slots

import (
	"errors"
	"fmt"
	"strings"
)

// Command is something this node should do. Commands of one step are carried
// out in their order; none of them may block the next event.
type Command interface {
	command()
	// String is what scenario scripts show.
	String() string
}

// Why a call is refused. The kubelet shows the text in the pod's status.
var (
	// ErrTaken: another node, or another resource of this node, has the slot.
	ErrTaken = errors.New("the slot is in use elsewhere")
	// ErrNoSlot: there is no such slot, or no longer.
	ErrNoSlot = errors.New("the device has no such slot")
	// ErrGone: the device is no longer offered by this node.
	ErrGone = errors.New("the device is gone")
	// ErrUnavailable: the API server did not confirm the claim.
	ErrUnavailable = errors.New("the claim could not be recorded in the API server")
	// ErrDeadline: the claim took too long.
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

// Claim asks for one patch that makes this node the owner of free slots. It is
// answered by [ClaimSettled].
type Claim struct {
	Instance string
	Slots    []int
}

// Release asks for one patch that makes slots of this node free. The patch must
// name the version of the Instance it was made for, so that one that was delayed
// cannot free a slot given again meanwhile. It is answered by [ReleaseSettled].
type Release struct {
	Instance string
	Slots    []int
}

// Advertise replaces the list that the kubelet has of an Instance's resource.
type Advertise struct {
	Instance string
	List     []Health
}

// Health is one slot in a list. A slot that is not healthy is given to no new
// container; the containers that have it go on.
type Health struct {
	Slot    int
	Healthy bool
}

// Withdraw ends the resource of an Instance: its list has been without a healthy
// slot, and without a call, for [Quiet].
type Withdraw struct{ Instance string }

// Report tells people of a contradiction which this node does not mend itself.
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
