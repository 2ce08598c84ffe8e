package publish

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// Action is an action on one Instance.
type Action string

// The actions.
const (
	Keep   Action = "Keep"   // it matches
	Create Action = "Create" // create Want
	Update Action = "Update" // send Patch: join it or correct it
	Leave  Action = "Leave"  // send Patch, which removes this node
	Delete Action = "Delete" // delete it if it still is Have
	Wait   Action = "Wait"   // wait for an event
)

// Step is a decision about one Instance.
type Step struct {
	Action Action
	Have   *v0.Instance // nil if none is known
	Want   *v0.Instance
	Patch  jsonpatch.Patch
}

// instance returns the Instance that the step is about: as it is or, if there is none, as
// it is created.
func (s Step) instance() *v0.Instance { return cmp.Or(s.Have, s.Want) }

// name returns the name of that Instance.
func (s Step) name() types.NamespacedName { return instances.NameOf(s.instance()) }

// nodeView is the state that one node's decisions are based on.
type nodeView struct {
	node          string
	configuration *v0.Configuration
	now           time.Time
	// collected reports that garbage collection deletes the Instances that the
	// Configuration owns.
	collected bool
}

// name returns the namespace and name of the Configuration.
func (s nodeView) name() types.NamespacedName {
	return types.NamespacedName{Namespace: s.configuration.Namespace, Name: s.configuration.Name}
}

// find returns the Instance of a device among those of its Configuration, by name, or
// nil, and the name that the device's Instance has or should get.
func (s nodeView) find(d streams.Device, have map[string]*v0.Instance) (*v0.Instance, string) {
	short := v0.InstanceName(s.configuration.Name, d.ID, s.node, d.Shared)
	c := have[short]
	if c != nil && s.belongsTo(c, d) {
		return c, short
	}
	long := v0.LongInstanceName(s.configuration.Name, d.ID, s.node, d.Shared)
	switch other := have[long]; {
	case other != nil && s.belongsTo(other, d):
		return other, long
	case c != nil: // the short name is taken
		return nil, long
	}
	return nil, short
}

// belongsTo reports whether an Instance belongs to a device of this node. One without the
// annotation was created by another program, for the device with that name.
func (s nodeView) belongsTo(instance *v0.Instance, d streams.Device) bool {
	id, found := instance.Annotations[v0.AnnotationDeviceID]
	return (!found || id == d.ID) && instance.Spec.Shared == d.Shared && (d.Shared || s.local(instance))
}

// local reports whether the Instance of a local device is this node's, and not that of
// another node: the digests of both devices may collide, and a compromised agent can
// create the Instance first. The node is the first that the Instance lists or, while it
// lists none, the one whose label it has.
func (s nodeView) local(instance *v0.Instance) bool {
	if len(instance.Spec.Nodes) > 0 {
		return s.author(instance)
	}
	own := v0.NodeLabel(s.node)
	for label := range instance.Labels {
		if v0.IsNodeLabel(label) && label != own {
			return false
		}
	}
	return true
}

// present decides about a device that exists.
func (s nodeView) present(d streams.Device, have *v0.Instance, name string) Step {
	want := intent(s.configuration, d, s.node, name)
	step := Step{Action: Keep, Have: have, Want: want}
	switch {
	case have == nil:
		step.Action = Create
	case have.DeletionTimestamp != nil:
		step.Action = Wait // created again after the deletion
	case ofFormerConfiguration(have, want) && deserted(have, s.node):
		step.Action = Delete
	case ofFormerConfiguration(have, want):
		step.Action = Wait // garbage collection deletes it
	default:
		if s.author(have) {
			step.Patch = description(have, want, s.now) // the author corrects it; the policy for agents allows nobody else to
			former := have.Spec.BrokerProperties[v0.PropertyDevicePaths]
			if former != "" && former != want.Spec.BrokerProperties[v0.PropertyDevicePaths] {
				want.Annotations[v0.AnnotationFormerDevicePaths] = s.now.UTC().Format(time.RFC3339) + " " + former
			}
		}
		if step.Patch = append(step.Patch, membership(have, want)...); len(step.Patch) > 0 {
			step.Action = Update
		}
	}
	return step
}

// author reports whether this node's agent is the Instance's author. The policy for
// agents (config/policy/agents.yaml) decides in the same way.
func (s nodeView) author(have *v0.Instance) bool {
	return len(have.Spec.Nodes) == 0 || have.Spec.Nodes[0] == s.node
}

// ofFormerConfiguration reports whether an Instance belongs to a Configuration that was deleted
// and created again. Garbage collection deletes the Instance, and the new
// Configuration needs its own.
func ofFormerConfiguration(have, want *v0.Instance) bool {
	return slices.ContainsFunc(have.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return ptr.Deref(reference.Controller, false) &&
			reference.Kind == v0.ConfigurationKind.Kind && reference.UID != want.OwnerReferences[0].UID
	})
}

// absent decides about an Instance of this node without a device. To leave the list of
// nodes, to leave the agent's selection and to delete the Instance are three steps: a
// node whose containers have slots takes only the first one, and the others when the
// last slot is free.
func (s nodeView) absent(have *v0.Instance) Step {
	step := Step{Action: Wait, Have: have}
	switch alone := deserted(have, s.node); {
	case have.DeletionTimestamp != nil:
	case alone:
		step.Action = Delete
	case s.collected && metav1.GetControllerOfNoCopy(have) != nil:
		// Garbage collection deletes it or, with --cascade=orphan, removes the owner.
	default:
		if step.Patch = departure(have, s.node); len(step.Patch) > 0 {
			step.Action = Leave
		}
	}
	return step
}
