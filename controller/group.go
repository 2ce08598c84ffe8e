package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
)

// group is what a pass of a Configuration knows about its Instances.
type group struct {
	instances []v0.Instance             // whose devices have not departed
	kinds     []schema.GroupVersionKind // of the objects of all
	nodes     int                       // of the cluster, if it matters
	// uncertain reports that the devices of some may have departed, and again after which
	// time to look again; 0 is not before the next event.
	uncertain bool
	again     time.Duration

	ready int
	// late is how many have not been reconciled since the Configuration was edited: their
	// conditions are about earlier templates.
	late int
	// failing could not be applied, held wait for the rollout, waiting are not ready.
	failing, held, waiting firstFew
}

// survey returns what is known about the Instances of a Configuration. If its status reports
// this generation as ready, the Instances that this process has not reconciled yet were
// reconciled before it started.
func (m *memory) survey(p *pass, instances []v0.Instance, now time.Time) group {
	found := group{instances: instances[:0]}
	wasReady := p.stored.Fields["observedGeneration"] == p.configuration.Generation &&
		meta.IsStatusConditionTrue(p.stored.Conditions, v0.ConditionReady)
	for i := range instances {
		instance := &instances[i]
		for _, entry := range instance.Status.Resources {
			if kind := inventory.KindOf(entry); !slices.Contains(found.kinds, kind) {
				found.kinds = append(found.kinds, kind)
			}
		}
		known := m.get(ownership.InstanceParent(instance)) // a copy: the Instance's own pass observes it
		device, again := known.absence.observe(instance, now)
		found.uncertain = found.uncertain || device == uncertain
		found.again = converge.Sooner(found.again, again)
		if device == departed {
			continue
		}
		reconciled := known.generation == p.configuration.Generation
		if known.generation == 0 || known.configuration != p.configuration.UID {
			reconciled = wasReady
		}
		if known.judged && known.awaits(instance.ResourceVersion) { // the conditions in the cache are the former ones
			reconciled, found.again = false, converge.Sooner(found.again, m.delay(p.parent.NamespacedName))
		}
		if !reconciled {
			found.late++
		}
		found.add(*instance)
	}
	return found
}

// notReconciled stands for the condition Ready of an Instance that does not have it yet.
var notReconciled = metav1.Condition{Message: "not reconciled yet"}

// add adds an Instance, and counts it by its conditions.
func (g *group) add(instance v0.Instance) {
	g.instances = append(g.instances, instance)
	line := func(condition *metav1.Condition) func() string {
		return func() string { return fmt.Sprintf("Instance %s: %s", instance.Name, condition.Message) }
	}
	applied := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionApplied)
	ready := cmp.Or(meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionReady), &notReconciled)
	held := applied != nil && applied.Reason == v0.ReasonRolloutWaiting
	if held {
		g.held.add(maxNamedInstances, func() string { return instance.Name })
	}
	switch {
	case isTrue(*ready):
		g.ready++
	case held:
	case applied != nil && applied.Status == metav1.ConditionFalse:
		g.failing.add(maxNamedInstances, line(applied))
	default:
		g.waiting.add(maxNamedInstances, line(ready))
	}
}

// conditions returns the conditions of a Configuration after a pass. accepted is the one
// about its templates.
func (g *group) conditions(configuration *v0.Configuration, accepted metav1.Condition, result converge.Outcome) []metav1.Condition {
	discovering := g.discoveringCondition(configuration)
	applied := g.appliedCondition(appliedCondition(result))
	conditions := []metav1.Condition{accepted, discovering, applied, g.readyCondition(readyCondition(result, applied), discovering)}
	if !isTrue(accepted) {
		conditions = append(conditions, trueCondition(v0.ConditionStalled, accepted.Reason, "see condition Accepted"))
	}
	return conditions
}

// appliedCondition judges whether all objects of a group and of its Instances are applied.
// own is about those of the group.
func (g *group) appliedCondition(own metav1.Condition) metav1.Condition {
	const kind = v0.ConditionApplied
	switch all := len(g.instances); {
	case !isTrue(own):
	case g.failing.count > 0:
		return falseCondition(kind, v0.ReasonInstancesFailing,
			fmt.Sprintf("the objects of %d of %d Instances could not be applied\n%s", g.failing.count, all, g.failing))
	case g.held.count > 0 && g.waiting.count > 0:
		return falseCondition(kind, v0.ReasonRolloutWaiting,
			fmt.Sprintf("%d of %d Instances are waiting to be updated\n%s\nuntil these are ready (spec.rollout.maxUnavailable)\n%s",
				g.held.count, all, g.held, g.waiting))
	case g.held.count > 0:
		return falseCondition(kind, v0.ReasonRolloutWaiting,
			fmt.Sprintf("%d of %d Instances are waiting to be updated\n%s", g.held.count, all, g.held))
	}
	return own
}

// readyCondition judges whether a group and its Instances are ready. own is about the
// objects of the group.
func (g *group) readyCondition(own, discovering metav1.Condition) metav1.Condition {
	const kind = v0.ConditionReady
	switch all := len(g.instances); {
	case !isTrue(own):
	case g.held.count > 0:
		return falseCondition(kind, v0.ReasonRolloutWaiting, "the rollout is in progress; see condition Applied")
	case g.waiting.count > 0:
		return falseCondition(kind, v0.ReasonProgressing, fmt.Sprintf("%d of %d Instances are ready\n%s", g.ready, all, g.waiting))
	case g.late > 0:
		return falseCondition(kind, v0.ReasonProgressing,
			fmt.Sprintf("%d of %d Instances have not been reconciled since the Configuration changed", g.late, all))
	case all == 0 && !isTrue(discovering):
		return falseCondition(kind, v0.ReasonNoInstances, "no device has been found; see condition Discovering")
	case all == 0:
		return falseCondition(kind, v0.ReasonNoInstances, "no device has been found")
	}
	return own
}

// discoveringCondition judges what the agents report. A node without the handler does not
// matter if others find devices.
func (g *group) discoveringCondition(configuration *v0.Configuration) metav1.Condition {
	const kind = v0.ConditionDiscovering
	all := configuration.Status.DiscoveryFailures
	failing, without := map[string]bool{}, map[string]bool{} // nodes
	var lines firstFew
	for _, failure := range all {
		if failure.HandlerMissing() {
			without[failure.Node] = true
			continue
		}
		failing[failure.Node] = true
		lines.add(maxProblems, func() string {
			return fmt.Sprintf("node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message)
		})
	}
	switch full := len(all) >= v0.MaxDiscoveryFailures; { // agents that find the list full do not add to it
	case len(failing) > 0 && full:
		return falseCondition(kind, v0.ReasonDiscoveryFailed, fmt.Sprintf("discovery fails on at least %d nodes\n%s", len(failing), lines))
	case len(failing) > 0:
		return falseCondition(kind, v0.ReasonDiscoveryFailed, lines.String())
	case len(without) > 0 && len(g.instances) == 0:
		atLeast := ""
		if len(all) >= v0.MaxDiscoveryFailures/2 { // the other agents do not report it
			atLeast = "at least "
		}
		return falseCondition(kind, v0.ReasonHandlerMissing,
			fmt.Sprintf("no discovery handler %s has registered on %s%d of %d nodes; deploy it, or correct spec.discoveryHandler.name",
				configuration.Spec.DiscoveryHandler.Name, atLeast, len(without), max(g.nodes, len(without))))
	}
	return trueCondition(kind, v0.ReasonDiscovering, "no agent reports a failure")
}
