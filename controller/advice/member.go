package advice

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/templating"
)

// Member is an object among those of one Configuration that [Together] compares.
type Member struct {
	templating.Object
	source map[string]any // nil for one of Akri's old fields
	values templating.Values
	kind   schema.GroupKind
	pods   []corev1.PodTemplateSpec
}

// Together returns the warnings about objects of one Configuration that get in each other's
// way: those of two devices at least, so that what is equal for all devices is seen.
func Together(members []Member) templating.Diagnostics {
	const most = 500 // with more devices, they are alike
	if len(members) > most {
		members = slices.Concat(members[:most/2], members[len(members)-most/2:])
	}
	warnings := ofSlots(members)
	for i := range members {
		warnings = append(warnings, members[i].ofSelector(members)...)
	}
	return warnings
}

func (m *Member) get(keys ...string) any { return templating.Keys(keys...).Lookup(m.Content) }

func (m *Member) name() string { return m.Origin.Template().String() }

func (m *Member) isService() bool { return m.kind == schema.GroupKind{Kind: "Service"} }

// labeled reports whether Akri adds its labels to the Pods.
func (m *Member) labeled() bool {
	_, labeled := templating.PodTemplate(m.kind)
	return labeled
}

// selector returns the labels that the object selects Pods by, and their place; nil if none.
func (m *Member) selector() (place templating.Path, labels map[string]any) {
	switch {
	case m.isService() && m.get("spec", "type") != string(corev1.ServiceTypeExternalName):
		place = templating.Keys("spec", "selector")
	case m.kind.Group == "apps" && m.get("spec", "selector", "matchExpressions") == nil:
		place = templating.Keys("spec", "selector", "matchLabels")
	default:
		return nil, nil
	}
	labels, _ = place.Lookup(m.Content).(map[string]any)
	return place, labels
}

// at returns a warning about a field of the object.
func (m *Member) at(field templating.Path, cause, hint string) templating.Diagnostic {
	return templating.Diagnostic{Origin: m.Origin.Template(), Field: field, Cause: errors.New(cause), Hint: hint}
}
