package controller

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/text"
)

// Bounds on what a condition's message lists; the rest is counted.
const (
	maxProblems       = 5
	maxMessage        = 4096
	maxNamedInstances = 3
)

// verdict is a condition before it is compared with the existing one.
type verdict struct {
	status  bool
	reason  string
	message string
}

func conditionTrue(reason, message string) verdict { return verdict{true, reason, message} }

func conditionFalse(reason, message string) verdict { return verdict{false, reason, message} }

// condition returns the verdict as a condition. Its time is in whole seconds, as
// the API server stores it, so that the status equals the one in the cache later.
func (v verdict) condition(kind string, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if v.status {
		status = metav1.ConditionTrue
	}
	now := metav1.Now()
	return metav1.Condition{
		Type: kind, Status: status, Reason: v.reason, Message: v.message,
		ObservedGeneration: generation, LastTransitionTime: now.Rfc3339Copy(),
	}
}

// applied judges the outcome of a pass over a parent's objects.
func applied(result converge.Outcome) verdict {
	if len(result.Problems) == 0 && result.Held {
		return conditionFalse(v0.ReasonRolloutWaiting,
			"the templates have changed; this Instance is updated once fewer other Instances are unavailable (spec.rollout.maxUnavailable); "+
				"condition Applied of the Configuration names them")
	}
	if len(result.Problems) == 0 {
		return conditionTrue(v0.ReasonApplied, objectCount(len(result.Resources), "no objects to apply", "applied"))
	}
	return conditionFalse(result.Problems[0].Reason, listed(result.Problems))
}

// readyObjects judges whether all objects of a parent are ready.
func readyObjects(result converge.Outcome, appliedVerdict verdict) verdict {
	if !appliedVerdict.status && appliedVerdict.reason != v0.ReasonRolloutWaiting {
		return conditionFalse(appliedVerdict.reason, "not all objects are applied; see condition Applied")
	}
	var waiting firstFew
	for _, resource := range result.Resources {
		if !resource.Ready {
			waiting.add(maxProblems, func() string { return fmt.Sprintf("%s %s: %s", resource.Kind, resource.Name, resource.Reason) })
		}
	}
	if waiting.count > 0 {
		return conditionFalse(v0.ReasonProgressing, waiting.String())
	}
	if result.Uncreated > 0 {
		return conditionFalse(v0.ReasonRolloutWaiting,
			objectCount(result.Uncreated, "", "to be created")+"; see condition Applied")
	}
	return conditionTrue(v0.ReasonReady, objectCount(len(result.Resources), "no objects", "ready"))
}

// objectCount returns a text such as "3 objects ready".
func objectCount(n int, none, state string) string {
	switch n {
	case 0:
		return none
	case 1:
		return "1 object " + state
	}
	return fmt.Sprintf("%d objects %s", n, state)
}

func listed(problems []*problem.Error) string {
	var messages firstFew
	for _, p := range problems {
		messages.add(maxProblems, p.Error)
	}
	return messages.String()
}

// firstFew holds the first messages of what may be thousands, and counts the rest.
type firstFew struct {
	count    int
	messages []string
}

func (f *firstFew) add(limit int, message func() string) {
	if f.count++; f.count <= limit {
		f.messages = append(f.messages, message())
	}
}

// String returns the messages as lines.
func (f firstFew) String() string {
	lines := strings.Join(f.messages, "\n")
	if more := f.count - len(f.messages); more > 0 {
		lines += fmt.Sprintf("\nand %d more", more)
	}
	return text.Truncate(lines, maxMessage)
}

// instanceConditions returns the conditions of an Instance after a pass.
func instanceConditions(before []metav1.Condition, result converge.Outcome) []metav1.Condition {
	conditions := slices.DeleteFunc(slices.Clone(before), func(c metav1.Condition) bool {
		return c.Type == v0.ConditionReady && c.Reason == v0.ReasonPending // the default
	})
	appliedVerdict := applied(result)
	meta.SetStatusCondition(&conditions, appliedVerdict.condition(v0.ConditionApplied, 0))
	meta.SetStatusCondition(&conditions, readyObjects(result, appliedVerdict).condition(v0.ConditionReady, 0))
	return conditions
}

// groupStatus returns the status of a Configuration and its Instances after a pass. late
// is how many of the Instances have a status from before the last edit; nodes is the number
// of the cluster's nodes.
func groupStatus(
	configuration *v0.Configuration, compiled *templates.Templates, instances []v0.Instance, late, nodes int, result converge.Outcome,
) v0.ConfigurationStatus {
	status := v0.ConfigurationStatus{
		ObservedGeneration: configuration.Generation,
		Instances:          int32(len(instances)),
		Resources:          result.Resources,
	}
	var failing, waiting, held firstFew
	for i := range instances {
		instance := &instances[i]
		applied := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionApplied)
		later := applied != nil && applied.Reason == v0.ReasonRolloutWaiting
		if later {
			held.add(maxNamedInstances, func() string { return instance.Name })
		}
		switch {
		case meta.IsStatusConditionTrue(instance.Status.Conditions, v0.ConditionReady):
			status.ReadyInstances++
		case later:
		case applied != nil && applied.Status == metav1.ConditionFalse:
			status.FailingInstances++
			failing.add(maxNamedInstances, func() string { return instanceLine(instance, applied.Message) })
		default:
			waiting.add(maxNamedInstances, func() string { return instanceLine(instance, readyMessage(instance)) })
		}
	}
	accepted, discovering, applied := acceptedVerdict(compiled), discoveringVerdict(configuration, len(instances), nodes), applied(result)
	if applied.status && failing.count > 0 {
		applied = conditionFalse(v0.ReasonInstancesFailing,
			fmt.Sprintf("the objects of %d of %d Instances could not be applied\n%s", failing.count, len(instances), failing))
	}
	if applied.status && held.count > 0 {
		applied = conditionFalse(v0.ReasonRolloutWaiting,
			fmt.Sprintf("%d of %d Instances are waiting to be updated\n%s", held.count, len(instances), held))
		if waiting.count > 0 {
			applied.message += fmt.Sprintf("\nuntil these are ready (spec.rollout.maxUnavailable)\n%s", waiting)
		}
	}
	ready := readyObjects(result, applied)
	switch {
	case !ready.status:
	case held.count > 0:
		ready = conditionFalse(v0.ReasonRolloutWaiting, "the rollout is in progress; see condition Applied")
	case waiting.count > 0:
		ready = conditionFalse(v0.ReasonProgressing,
			fmt.Sprintf("%d of %d Instances are ready\n%s", status.ReadyInstances, len(instances), waiting))
	case late > 0:
		ready = conditionFalse(v0.ReasonProgressing,
			fmt.Sprintf("%d of %d Instances have not been reconciled since the Configuration changed", late, len(instances)))
	case len(instances) == 0:
		ready = conditionFalse(v0.ReasonNoInstances, "no device has been found")
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
	if !accepted.status {
		stalled := verdict{status: true, reason: accepted.reason, message: "see condition Accepted"}
		status.Conditions = append(status.Conditions, stalled.condition(v0.ConditionStalled, configuration.Generation))
	}
	return status
}

func acceptedVerdict(compiled *templates.Templates) verdict {
	if len(compiled.Problems) > 0 {
		return conditionFalse(compiled.Problems[0].Reason, listed(compiled.Problems))
	}
	return conditionTrue(v0.ReasonAccepted, "the templates are valid")
}

// discoveringVerdict judges what the agents report. A node without the handler does not
// matter if others find devices.
func discoveringVerdict(configuration *v0.Configuration, instances, nodes int) verdict {
	var failures, missing []v0.DiscoveryFailure
	for _, failure := range configuration.Status.DiscoveryFailures {
		if failure.HandlerMissing() {
			missing = append(missing, failure)
		} else {
			failures = append(failures, failure)
		}
	}
	switch {
	case len(failures) > 0:
	case len(missing) > 0 && instances == 0:
		atLeast := ""
		if len(missing) >= v0.MaxDiscoveryFailures/2 { // the other agents do not report it
			atLeast = "at least "
		}
		return conditionFalse(v0.ReasonHandlerMissing,
			fmt.Sprintf("no discovery handler %s has registered on %s%d of %d nodes; deploy it, or correct spec.discoveryHandler.name",
				configuration.Spec.DiscoveryHandler.Name, atLeast, countNodes(missing), max(nodes, countNodes(missing))))
	default:
		return conditionTrue(v0.ReasonDiscovering, "no agent reports a failure")
	}
	var lines firstFew
	for _, failure := range failures {
		lines.add(maxProblems, func() string {
			return fmt.Sprintf("node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message)
		})
	}
	message := lines.String()
	if len(configuration.Status.DiscoveryFailures) >= v0.MaxDiscoveryFailures { // agents that find the list full do not add to it
		message = fmt.Sprintf("discovery fails on at least %d nodes\n%s", countNodes(failures), message)
	}
	return conditionFalse(v0.ReasonDiscoveryFailed, message)
}

func countNodes(failures []v0.DiscoveryFailure) int {
	nodes := map[string]bool{}
	for _, failure := range failures {
		nodes[failure.Node] = true
	}
	return len(nodes)
}

func instanceLine(instance *v0.Instance, message string) string {
	return fmt.Sprintf("Instance %s: %s", instance.Name, message)
}

func readyMessage(instance *v0.Instance) string {
	if ready := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionReady); ready != nil {
		return ready.Message
	}
	return "not reconciled yet"
}
