package webhook

import (
	"fmt"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// checkReferences denies discoveryProperties from other namespaces, unless agents read
// them. Those that are stored already are only warned of, so that the rest of the
// Configuration can be edited.
func checkReferences(r admissionRequest, crossNamespace bool) []Finding {
	if crossNamespace {
		return nil
	}
	stored := foreignReferences(r.old)
	var findings []Finding
	for _, reference := range foreignReferences(r.configuration) {
		level := Deny
		if slices.ContainsFunc(stored, func(other foreignReference) bool { return other.object == reference.object }) {
			level = Warn
		}
		findings = append(findings, Finding{level, finding.Mistake{
			Path:  reference.place,
			Cause: reference.object + " is in another namespace, which agents do not read",
			Hint: "copy it to namespace " + r.configuration.Namespace +
				", or run the agents and the webhook with --allow-cross-namespace-properties",
		}})
	}
	return findings
}

// foreignReference is a reference to an object of another namespace than the
// Configuration's.
type foreignReference struct {
	place  string
	object string // as in Secret NAMESPACE/NAME
}

// foreignReferences returns the references of a Configuration, which may be nil, in order.
func foreignReferences(configuration *v0.Configuration) []foreignReference {
	if configuration == nil {
		return nil
	}
	var foreign []foreignReference
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.ValueFrom == nil {
			continue
		}
		for _, source := range []struct {
			kind, field string
			key         *v0.KeyReference
		}{
			{"Secret", "secretKeyRef", property.ValueFrom.SecretKeyRef},
			{"ConfigMap", "configMapKeyRef", property.ValueFrom.ConfigMapKeyRef},
		} {
			if source.key == nil || source.key.Namespace == "" || source.key.Namespace == configuration.Namespace {
				continue
			}
			foreign = append(foreign, foreignReference{
				place:  fmt.Sprintf("spec.discoveryHandler.discoveryProperties[%d].valueFrom.%s.namespace", i, source.field),
				object: fmt.Sprintf("%s %s/%s", source.kind, source.key.Namespace, source.key.Name),
			})
		}
	}
	return foreign
}
