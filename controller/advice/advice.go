package advice

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// Of returns the warnings about an object that was rendered with some values from a
// template as its author wrote it; nil for one of Akri's old fields. What [Together] needs to
// know of the object comes with them.
func Of(source map[string]any, object templating.Object, values templating.Values) (Member, templating.Diagnostics) {
	apiVersion, _ := object.Content["apiVersion"].(string)
	name, _ := object.Content["kind"].(string)
	m := Member{Object: object, source: source, values: values, kind: schema.FromAPIVersionAndKind(apiVersion, name).GroupKind()}
	warnings := m.ofPods()
	if source == nil {
		warnings = append(warnings, ofTexts(object.Origin.Level, nil, object.Content)...)
	}
	switch m.kind {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		warnings = append(warnings, ofJob(source, object)...)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		warnings = append(warnings, ofClaim(source, object.Origin.Level)...)
	}
	for i := range warnings {
		warnings[i].Origin = object.Origin.Template()
	}
	return m, warnings
}

func warning(field templating.Path, cause, hint string) templating.Diagnostic {
	return templating.Diagnostic{Field: field, Cause: errors.New(cause), Hint: hint}
}

// ofTexts warns of what the author of an old field may take for an expression: it is replaced
// neither here nor in Akri.
func ofTexts(level templating.Level, field templating.Path, value any) (warnings templating.Diagnostics) {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "{{") || value == "PLACEHOLDER" {
			return templating.Diagnostics{warning(field,
				"this text is not replaced: in Akri's old fields, only {{PLACEHOLDER}} is replaced, as a name in requests and limits",
				"write an expression in "+level.String()+", to which kubectl akri convert moves the field")}
		}
	case []any:
		for i, element := range value {
			warnings = append(warnings, ofTexts(level, append(slices.Clip(field), templating.Index(i)), element)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := append(slices.Clip(field), templating.Key(key))
			warnings = append(append(warnings, ofTexts(level, below, key)...), ofTexts(level, below, value[key])...)
		}
	}
	return warnings
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
func ofJob(source map[string]any, object templating.Object) templating.Diagnostics {
	const once = v0.Domain + "/once"
	spec, _ := object.Content["spec"].(map[string]any)
	if spec["ttlSecondsAfterFinished"] == nil || object.Directives.Once || decided(source, once) {
		return nil
	}
	return templating.Diagnostics{warning(templating.Keys("spec", "ttlSecondsAfterFinished"),
		"the Job is deleted when it has finished, and then created again, so it runs again and again",
		"annotate it "+once+`: "true" to run it once per device, or "false" if that is intended`)}
}

// ofClaim warns of a PersistentVolumeClaim that is deleted with the devices, and its data
// with it, unless the template says what is intended.
func ofClaim(source map[string]any, level templating.Level) templating.Diagnostics {
	const policy = v0.Domain + "/deletion-policy"
	if decided(source, policy) {
		return nil
	}
	when := "its device disappears"
	if level == templating.ConfigurationLevel {
		when = "the last device disappears, even for a moment"
	}
	return templating.Diagnostics{warning(nil, "the PersistentVolumeClaim is deleted when "+when+", and its data with it",
		"annotate it "+policy+": orphan to keep it, or delete if that is intended")}
}
