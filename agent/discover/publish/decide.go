package publish

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// AuthorPatience is how long an Instance may contradict its Configuration before an
// agent that is not its author corrects it.
const AuthorPatience = 10 * time.Second

// Action is an action on one Instance.
type Action string

// The actions.
const (
	Keep   Action = "Keep"   // it matches
	Apply  Action = "Apply"  // apply Want
	Leave  Action = "Leave"  // apply Want, which lacks this node
	Delete Action = "Delete" // delete it if it still is Have
	Wait   Action = "Wait"   // wait for an event, or until Until
)

// Step is a decision about one Instance.
type Step struct {
	Action Action
	Name   string
	Have   *v0.Instance // nil if none is known
	Want   *v0.Instance
	// Force takes over fields from other field managers.
	Force bool
	Until time.Time
}

// nodeView is the state that one node's decisions are based on.
type nodeView struct {
	node          string
	configuration *v0.Configuration
	now           time.Time
}

// find returns the Instance of a device among those of its Configuration, or nil,
// and the name that the device's Instance has or should get.
func (s nodeView) find(d streams.Device, have []*v0.Instance) (*v0.Instance, string) {
	short := v0.InstanceName(s.configuration.Name, d.ID, s.node, d.Shared)
	long := v0.LongInstanceName(s.configuration.Name, d.ID, s.node, d.Shared)
	name := short
	for _, instance := range have {
		if instance.Name != short && instance.Name != long {
			continue
		}
		if belongsTo(instance, d) {
			return instance, instance.Name
		}
		if instance.Name == short {
			name = long // taken
		}
	}
	return nil, name
}

// belongsTo reports whether an Instance belongs to a device. One without the
// annotation was created by another program, for the device with that name.
func belongsTo(instance *v0.Instance, d streams.Device) bool {
	id, found := instance.Annotations[v0.AnnotationDeviceID]
	return (!found || id == d.ID) && instance.Spec.Shared == d.Shared
}

// present decides about a device that exists. differs is the time since which its
// Instance contradicts the Configuration; zero if that was not known before.
func (s nodeView) present(d streams.Device, have *v0.Instance, name string, differs time.Time) Step {
	want := intent(s.configuration, d, s.node, name)
	step := Step{Name: name, Have: have, Want: want}
	switch {
	case have == nil:
		step.Action = Apply
	case have.DeletionTimestamp != nil:
		step.Action = Wait // created again after the deletion
	case orphaned(have, want):
		step.Action = Delete
	case s.author(have) && matches(have, want):
		step.Action = Keep
	case s.author(have):
		step.Action, step.Force = Apply, true
	case !joined(have, want):
		step.Action, step.Want = Apply, following(want, have, s.configuration, false)
		step.Force = slices.Contains(have.Spec.Nodes, s.node) // its labels or annotations were edited
	case matches(have, following(want, have, s.configuration, true)):
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

// author reports whether this node's agent is the Instance's author.
func (s nodeView) author(have *v0.Instance) bool {
	return len(have.Spec.Nodes) == 0 || have.Spec.Nodes[0] == s.node
}

// orphaned reports whether an Instance belongs to a Configuration that was deleted
// and created again. Garbage collection deletes the Instance, and the new
// Configuration needs its own.
func orphaned(have, want *v0.Instance) bool {
	return slices.ContainsFunc(have.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return ptr.Deref(reference.Controller, false) &&
			reference.Kind == v0.ConfigurationKind.Kind && reference.UID != want.OwnerReferences[0].UID
	})
}

// absent decides about an Instance of this node without a device.
func (s nodeView) absent(have *v0.Instance) Step {
	step := Step{Name: have.Name, Have: have}
	others := slices.ContainsFunc(have.Spec.Nodes, func(node string) bool { return node != s.node })
	switch {
	case have.DeletionTimestamp != nil:
		step.Action = Wait
	case others:
		step.Action, step.Want = Leave, departing(have)
	default:
		step.Action = Delete
	}
	return step
}
