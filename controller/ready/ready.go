package ready

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
	if object.GetKind() != "Pod" || object.GetAPIVersion() != "v1" {
		return false
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase == "Failed" || phase == "Succeeded"
}

func shorten(text string) string {
	if len(text) <= longestReason {
		return text
	}
	runes := []rune(text)
	return string(runes[:min(len(runes), longestReason-1)]) + "…"
}
