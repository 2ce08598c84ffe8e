package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/templates"
)

// groupStatus sums up a Configuration and its Instances.
func groupStatus(configuration *v0.Configuration, compiled *templates.Templates, instances []v0.Instance, result outcome) v0.ConfigurationStatus {
	status := v0.ConfigurationStatus{
		ObservedGeneration: configuration.Generation,
		Instances:          int32(len(instances)),
		Resources:          result.resources,
	}
	var failing, waiting, held some
	for i := range instances {
		instance := &instances[i]
		applied := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionApplied)
		later := applied != nil && applied.Reason == v0.ReasonRolloutWaiting
		if later {
			held.add(func() string { return instance.Name })
		}
		switch {
		case meta.IsStatusConditionTrue(instance.Status.Conditions, v0.ConditionReady):
			status.ReadyInstances++
		case applied != nil && applied.Status == metav1.ConditionFalse && !later:
			status.FailingInstances++
			failing.add(func() string { return fmt.Sprintf("Instance %s: %s", instance.Name, applied.Message) })
		default:
			waiting.add(func() string { return fmt.Sprintf("Instance %s: %s", instance.Name, readyMessage(instance)) })
		}
	}
	accepted, applied := acceptedVerdict(compiled), applied(result)
	if applied.status && failing.count > 0 {
		applied = no(v0.ReasonInstancesFailing, fmt.Sprintf("%d of %d Instances cannot be applied\n%s", failing.count, len(instances), failing))
	}
	if applied.status && held.count > 0 {
		applied = no(v0.ReasonRolloutWaiting, fmt.Sprintf("%d of %d Instances wait for their turn\n%s", held.count, len(instances), held))
	}
	ready := readyObjects(result, applied)
	if held.count > 0 && ready.status {
		ready = no(v0.ReasonRolloutWaiting, "the rollout goes on; see condition Applied")
	}
	if ready.status && waiting.count > 0 {
		ready = no(v0.ReasonProgressing, fmt.Sprintf("%d of %d Instances are ready\n%s", status.ReadyInstances, len(instances), waiting))
	}
	discovering := discoveringVerdict(configuration.Status.DiscoveryFailures)
	if ready.status && len(instances) == 0 {
		ready = no(v0.ReasonNoInstances, "no device has been found")
		if !discovering.status {
			ready.message += "; see condition Discovering"
		}
	}
	status.Conditions = []metav1.Condition{
		accepted.condition(v0.ConditionAccepted, configuration.Generation),
		discovering.condition(v0.ConditionDiscovering, configuration.Generation),
		applied.condition(v0.ConditionApplied, configuration.Generation),
		ready.condition(v0.ConditionReady, configuration.Generation),
	}
	return status
}

// some are messages about Instances, of which there may be thousands: the first few
// are kept, the others counted.
type some struct {
	count int
	first []string
}

func (s *some) add(message func() string) {
	if s.count++; s.count <= mostNamedFailures {
		s.first = append(s.first, message())
	}
}

func (s some) String() string { return joined(s.first, s.count) }

func acceptedVerdict(compiled *templates.Templates) verdict {
	if len(compiled.Problems) > 0 {
		return no(compiled.Problems[0].Reason, listed(compiled.Problems))
	}
	return yes(v0.ReasonAccepted, "the templates are valid")
}

// discoveringVerdict reads what the agents report.
func discoveringVerdict(failures []v0.DiscoveryFailure) verdict {
	if len(failures) == 0 {
		return yes(v0.ReasonDiscovering, "no agent reports a failure")
	}
	lines := make([]string, len(failures))
	for i, failure := range failures {
		lines[i] = fmt.Sprintf("node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message)
	}
	return no(v0.ReasonDiscoveryFailed, joined(lines[:min(len(lines), mostProblems)], len(lines)))
}

func readyMessage(instance *v0.Instance) string {
	if ready := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionReady); ready != nil {
		return ready.Message
	}
	return "not looked at yet"
}
