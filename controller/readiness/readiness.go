package readiness

import (
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
	if phase := podPhase(object); phase == podFailed {
		return false, shorten("the Pod has failed" + failure(object)) // kstatus calls it current
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

// Phases of a Pod that never runs again.
const (
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
	var report strings.Builder
	for _, field := range []string{"reason", "message"} {
		if value, _, _ := unstructured.NestedString(pod.Object, "status", field); value != "" {
			report.WriteString(": " + value)
		}
	}
	return report.String()
}

func shorten(reason string) string { return text.Truncate(reason, maxReason) }
