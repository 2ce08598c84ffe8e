package controller

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/text"
)

// Bounds on what a condition's message lists; the rest is counted.
const (
	maxProblems       = 5
	maxMessage        = 4096
	maxNamedInstances = 3
)

func trueCondition(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func falseCondition(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func isTrue(condition metav1.Condition) bool { return condition.Status == metav1.ConditionTrue }

// appliedCondition judges the outcome of a pass over a parent's objects.
func appliedCondition(result converge.Outcome) metav1.Condition {
	const kind = v0.ConditionApplied
	switch {
	case len(result.Problems) > 0:
		return falseCondition(kind, result.Problems[0].Reason, listed(result.Problems))
	case result.Held:
		return falseCondition(kind, v0.ReasonRolloutWaiting,
			"the templates have changed; this Instance is updated once fewer other Instances are unavailable (spec.rollout.maxUnavailable); "+
				"condition Applied of the Configuration names them")
	}
	return trueCondition(kind, v0.ReasonApplied, objectCount(len(result.Resources), "no objects to apply", "applied"))
}

// readyCondition judges whether all objects of a parent are ready.
func readyCondition(result converge.Outcome, applied metav1.Condition) metav1.Condition {
	const kind = v0.ConditionReady
	var waiting firstFew
	for _, resource := range result.Resources {
		if !resource.Ready {
			waiting.add(maxProblems, func() string { return fmt.Sprintf("%s %s: %s", resource.Kind, resource.Name, resource.Reason) })
		}
	}
	switch {
	case !isTrue(applied) && applied.Reason != v0.ReasonRolloutWaiting:
		return falseCondition(kind, applied.Reason, "not all objects are applied; see condition Applied")
	case waiting.count > 0:
		return falseCondition(kind, v0.ReasonProgressing, waiting.String())
	case result.Uncreated > 0:
		return falseCondition(kind, v0.ReasonRolloutWaiting, objectCount(result.Uncreated, "", "to be created")+"; see condition Applied")
	}
	return trueCondition(kind, v0.ReasonReady, objectCount(len(result.Resources), "no objects", "ready"))
}

// instanceConditions returns the conditions of an Instance after a pass.
func instanceConditions(result converge.Outcome) []metav1.Condition {
	applied := appliedCondition(result)
	return []metav1.Condition{applied, readyCondition(result, applied)}
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
