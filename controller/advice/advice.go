package advice

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// Of returns the warnings about an object that was rendered with some values from a
// template as its author wrote it; nil for one of Akri's old fields. Their paths begin below
// the object, and are empty for the object as a whole.
func Of(source map[string]any, object templating.Object, values templating.Values) []finding.Mistake {
	apiVersion, _ := object.Content["apiVersion"].(string)
	name, _ := object.Content["kind"].(string)
	kind := schema.FromAPIVersionAndKind(apiVersion, name).GroupKind()
	mistakes := ofPods(source, kind, object.Content)
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: Deployment}, schema.GroupKind{Group: "apps", Kind: DaemonSet}:
		return append(mistakes, ofUpdate(name, object.Content, slotsOf(source, object.Origin.Level, values))...)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return append(mistakes, ofJob(source, object)...)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return append(mistakes, ofClaim(source, object.Origin.Level)...)
	}
	return mistakes
}

// decided reports whether a template has a directive, whatever its value.
func decided(source map[string]any, directive string) bool {
	metadata, _ := source["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, found := annotations[directive]
	return found
}

// ofJob warns of a Job that Kubernetes deletes when it has finished: the controller creates
// it again, unless the template says what is intended.
func ofJob(source map[string]any, object templating.Object) []finding.Mistake {
	const once = v0.Domain + "/once"
	spec, _ := object.Content["spec"].(map[string]any)
	if spec["ttlSecondsAfterFinished"] == nil || object.Directives.Once || decided(source, once) {
		return nil
	}
	return []finding.Mistake{{
		Path:  "spec.ttlSecondsAfterFinished",
		Cause: "the Job is deleted when it has finished, and then created again, so it runs again and again",
		Hint:  "annotate it " + once + `: "true" to run it once per device, or "false" if that is intended`,
	}}
}

// ofClaim warns of a PersistentVolumeClaim that is deleted with the devices, and its data
// with it, unless the template says what is intended.
func ofClaim(source map[string]any, level templating.Level) []finding.Mistake {
	const policy = v0.Domain + "/deletion-policy"
	if decided(source, policy) {
		return nil
	}
	when := "its device disappears"
	if level == templating.ConfigurationLevel {
		when = "the last device disappears, even for a moment"
	}
	return []finding.Mistake{{
		Cause: "the PersistentVolumeClaim is deleted when " + when + ", and its data with it",
		Hint:  "annotate it " + policy + ": orphan to keep it, or delete if that is intended",
	}}
}
