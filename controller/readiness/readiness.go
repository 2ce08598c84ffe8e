package readiness

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/templating/readywhen"
)

// longestReason bounds what other controllers' messages add to our statuses.
const longestReason = 256

// Of judges an object as it is in the API server. The reason is empty if it is
// ready.
func Of(object *unstructured.Unstructured) (ready bool, reason string) {
	if object.GetDeletionTimestamp() != nil {
		return false, "being deleted"
	}
	if phase := podPhase(object); phase == podFailed {
		return false, shorten("the Pod has failed" + failure(object)) // kstatus calls it current: it changes no more
	}
	result, err := status.Compute(object)
	switch {
	case err != nil:
		return false, shorten(err.Error())
	case result.Status == status.CurrentStatus:
		return true, ""
	case result.Message == "":
		return false, string(result.Status)
	}
	return false, shorten(result.Message)
}

// By judges an object by a template's own condition. The reason is empty if it is
// ready.
func By(object *unstructured.Unstructured, condition *readywhen.Condition) (reason string) {
	if object.GetDeletionTimestamp() != nil {
		return "being deleted"
	}
	switch holds, err := condition.Holds(object.Object); {
	case err != nil:
		return shorten("ready-when: " + err.Error())
	case !holds:
		return "ready-when does not hold"
	}
	return ""
}

// Ended tells whether an object is a Pod that has run to its end, was refused by
// its node, or was evicted: it will never run again.
func Ended(object *unstructured.Unstructured) bool {
	phase := podPhase(object)
	return phase == podFailed || phase == podSucceeded
}

// Phases of a Pod that will never run again.
const (
	podFailed    = "Failed"
	podSucceeded = "Succeeded"
)

// podPhase is empty if the object is not a Pod.
func podPhase(object *unstructured.Unstructured) string {
	if object.GetKind() != "Pod" || object.GetAPIVersion() != "v1" {
		return ""
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase
}

// failure is what the node, or whoever evicted the Pod, says of it.
func failure(pod *unstructured.Unstructured) string {
	var text string
	for _, field := range []string{"reason", "message"} {
		if said, _, _ := unstructured.NestedString(pod.Object, "status", field); said != "" {
			text += ": " + said
		}
	}
	return text
}

func shorten(text string) string {
	if len(text) <= longestReason {
		return text
	}
	runes := []rune(text)
	return string(runes[:min(len(runes), longestReason-1)]) + "…"
}
