package controller

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
)

// Bounds on what a condition's message lists; the rest is counted.
const (
	mostProblems      = 5
	longestMessage    = 4096
	mostNamedFailures = 3
)

// verdict is a condition before it is compared with the one that is there.
type verdict struct {
	status  bool
	reason  string
	message string
}

func yes(reason, message string) verdict { return verdict{true, reason, message} }

func no(reason, message string) verdict { return verdict{false, reason, message} }

func (v verdict) condition(kind string, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if v.status {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: v.reason, Message: v.message, ObservedGeneration: generation}
}

// applied judges what came of the objects of a parent.
func applied(result outcome) verdict {
	if len(result.problems) == 0 && result.held {
		return no(v0.ReasonRolloutWaiting, "the templates have changed; this Instance is changed when fewer others are not ready (spec.rollout.maxUnavailable)")
	}
	if len(result.problems) == 0 {
		return yes(v0.ReasonApplied, objectCount(len(result.resources))+" as rendered")
	}
	return no(result.problems[0].Reason, listed(result.problems))
}

// readyObjects judges whether a parent's objects have become what they were
// applied for.
func readyObjects(result outcome, appliedVerdict verdict) verdict {
	if !appliedVerdict.status && appliedVerdict.reason != v0.ReasonRolloutWaiting {
		return no(appliedVerdict.reason, "not everything is applied; see condition Applied")
	}
	var waiting []string
	for _, resource := range result.resources {
		if !resource.Ready {
			waiting = append(waiting, fmt.Sprintf("%s %s: %s", resource.Kind, resource.Name, resource.Reason))
		}
	}
	if len(waiting) > 0 {
		return no(v0.ReasonProgressing, joined(waiting[:min(len(waiting), mostProblems)], len(waiting)))
	}
	return yes(v0.ReasonReady, objectCount(len(result.resources))+" ready")
}

func objectCount(n int) string {
	switch n {
	case 0:
		return "nothing is asked for: no object is"
	case 1:
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", n)
}

func listed(problems []problem.Problem) string {
	messages := make([]string, len(problems))
	for i, problem := range problems {
		messages[i] = problem.Message
	}
	return joined(messages[:min(len(messages), mostProblems)], len(messages))
}

// joined puts the first of so many messages into lines.
func joined(messages []string, count int) string {
	text := strings.Join(messages, "\n")
	if more := count - len(messages); more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "") + "…"
	}
	return text
}
