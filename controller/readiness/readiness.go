package readiness

import (
	"regexp"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/readywhen"
)

// maxReason bounds how many bytes another controller's message adds to a status.
const maxReason = 256

// Check reports whether an object is ready by its kind's standard. The reason is empty
// if it is.
func Check(object *unstructured.Unstructured) (ready bool, reason string) {
	if object.GetDeletionTimestamp() != nil {
		return false, "being deleted"
	}
	switch podPhase(object) {
	case podFailed:
		return false, shorten("the Pod has failed" + failure(object)) // kstatus calls it current
	case podPending:
		if why := obstacle(object); why != "" { // kstatus says only that it is pending
			return false, shorten("the Pod is pending" + why)
		}
	}
	result, err := status.Compute(object)
	switch {
	case err != nil:
		return false, "its status cannot be interpreted" // the error quotes it
	case result.Status == status.CurrentStatus:
		return true, ""
	case result.Message == "":
		return false, string(result.Status)
	}
	return false, shorten(result.Message)
}

// CheckBy returns why an object does not meet a template's own condition, or "" if it
// does.
func CheckBy(object *unstructured.Unstructured, condition *readywhen.Condition) (reason string) {
	if object.GetDeletionTimestamp() != nil {
		return "being deleted"
	}
	switch holds, err := condition.Holds(object.Object); {
	case err != nil:
		return shorten(err.Error())
	case !holds:
		return "the ready-when condition is not met"
	}
	return ""
}

// Terminated reports whether an object is a Pod that has terminated, was refused by its
// node, or was evicted: it never runs again.
func Terminated(object *unstructured.Unstructured) bool {
	phase := podPhase(object)
	return phase == podFailed || phase == podSucceeded
}

// Phases of a Pod. One that has failed or succeeded never runs again.
const (
	podPending   = "Pending"
	podFailed    = "Failed"
	podSucceeded = "Succeeded"
)

// podPhase returns the phase of a Pod, or "" for other kinds.
func podPhase(object *unstructured.Unstructured) string {
	if object.GetKind() != "Pod" || object.GetAPIVersion() != "v1" {
		return ""
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase
}

// failure returns what the node, or the client that evicted the Pod, reports.
func failure(pod *unstructured.Unstructured) string {
	whole, _ := pod.Object["status"].(map[string]any)
	return explanation(whole)
}

// obstacle returns why a pending Pod has no node, or why a container does not start; "" if
// it is about to start.
func obstacle(pod *unstructured.Unstructured) string {
	whole, _ := pod.Object["status"].(map[string]any)
	conditions, _ := whole["conditions"].([]any)
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] == "PodScheduled" && condition["status"] == "False" {
			return explanation(condition)
		}
	}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		containers, _ := whole[field].([]any)
		for _, each := range containers {
			container, _ := each.(map[string]any)
			state, _ := container["state"].(map[string]any)
			waiting, found := state["waiting"].(map[string]any)
			if reason := waiting["reason"]; found && reason != "ContainerCreating" && reason != "PodInitializing" {
				return pullFailure(explanation(waiting))
			}
		}
	}
	return ""
}

// backOff begins the kubelet's message while it waits for the next pull of an image. The
// rest is what it said when the last pull failed (pkg/kubelet/images/image_manager.go).
var backOff = regexp.MustCompile(`^: ImagePullBackOff: Back-off pulling image "[^"]*": `)

// pullFailure returns the same explanation for both stages of a failing pull, between
// which the kubelet alternates.
func pullFailure(explained string) string { return backOff.ReplaceAllString(explained, ": ") }

// explanation returns the reason and the message of a part of a status.
func explanation(part map[string]any) string {
	var report strings.Builder
	for _, field := range []string{"reason", "message"} {
		if value, _ := part[field].(string); value != "" {
			report.WriteString(": " + value)
		}
	}
	return report.String()
}

func shorten(reason string) string { return text.Truncate(reason, maxReason) }
