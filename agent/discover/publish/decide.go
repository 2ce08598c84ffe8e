package publish

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// AuthorPatience is how long an Instance may contradict its Configuration
// before an agent that is not its author puts it right.
const AuthorPatience = 10 * time.Second

// Action is what to do about one Instance.
type Action string

// The actions.
const (
	Keep   Action = "Keep"   // it is as it should be
	Apply  Action = "Apply"  // write Want
	Leave  Action = "Leave"  // write Want, which lacks this node
	Delete Action = "Delete" // if it is still as Have
	Wait   Action = "Wait"   // until something happens to it, or until Until
)

// Step is a decision.
type Step struct {
	Action Action
	Name   string
	Have   *v0.Instance // nil: it does not exist, as far as known
	Want   *v0.Instance
	// Force takes fields over from other agents.
	Force bool
	Until time.Time
}

// side is where a decision is taken.
type side struct {
	node          string
	configuration *v0.Configuration
	now           time.Time
}

// find picks the Instance of a device among those of its Configuration, and the
// name the device's Instance has or should get.
func (s side) find(d streams.Device, have []*v0.Instance) (*v0.Instance, string) {
	short := v0.InstanceName(s.configuration.Name, d.ID, s.node, d.Shared)
	long := v0.LongInstanceName(s.configuration.Name, d.ID, s.node, d.Shared)
	name := short
	for _, instance := range have {
		if instance.Name != short && instance.Name != long {
			continue
		}
		if isOf(instance, d) {
			return instance, instance.Name
		}
		if instance.Name == short {
			name = long // taken
		}
	}
	return nil, name
}

// isOf tells whether an Instance is a device's. One without a note of the id
// was made by another program, for the device its name stands for.
func isOf(instance *v0.Instance, d streams.Device) bool {
	id, noted := instance.Annotations[v0.AnnotationDeviceID]
	return (!noted || id == d.ID) && instance.Spec.Shared == d.Shared
}

// present decides about a device that is there. differs is since when its
// Instance contradicts the Configuration; zero if that is news.
func (s side) present(d streams.Device, have *v0.Instance, name string, differs time.Time) Step {
	want := intent(s.configuration, d, s.node, name)
	step := Step{Name: name, Have: have, Want: want}
	switch {
	case have == nil:
		step.Action = Apply
	case have.DeletionTimestamp != nil:
		step.Action = Wait // made anew when it has gone
	case outlived(have, want):
		step.Action = Delete
	case s.author(have) && says(have, want):
		step.Action = Keep
	case s.author(have):
		step.Action, step.Force = Apply, true
	case !joined(have, want):
		step.Action, step.Want = Apply, following(want, have, s.configuration, false)
		step.Force = slices.Contains(have.Spec.Nodes, s.node) // a mark was edited away
	case says(have, following(want, have, s.configuration, true)):
		step.Action = Keep
	case differs.IsZero():
		step.Action, step.Until = Wait, s.now.Add(AuthorPatience)
	case differs.Add(AuthorPatience).After(s.now):
		step.Action, step.Until = Wait, differs.Add(AuthorPatience)
	default:
		step.Action, step.Force, step.Want = Apply, true, following(want, have, s.configuration, true)
	}
	return step
}

// author tells whether this node's agent is the one that speaks for the device.
func (s side) author(have *v0.Instance) bool {
	return len(have.Spec.Nodes) == 0 || have.Spec.Nodes[0] == s.node
}

// outlived tells whether an Instance belongs to a Configuration that has been
// deleted and made anew since. Garbage collection will take it; the Configuration
// of today needs its own.
func outlived(have, want *v0.Instance) bool {
	return slices.ContainsFunc(have.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return ptr.Deref(reference.Controller, false) &&
			reference.Kind == v0.ConfigurationKind.Kind && reference.UID != want.OwnerReferences[0].UID
	})
}

// absent decides about an Instance of this node whose device is not there.
func (s side) absent(have *v0.Instance) Step {
	step := Step{Name: have.Name, Have: have}
	others := slices.ContainsFunc(have.Spec.Nodes, func(node string) bool { return node != s.node })
	switch {
	case have.DeletionTimestamp != nil:
		step.Action = Wait
	case others:
		step.Action, step.Want = Leave, departing(have, s.node)
	default:
		step.Action = Delete
	}
	return step
}
