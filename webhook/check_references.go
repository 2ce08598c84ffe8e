package webhook

import (
	"cmp"
	"fmt"

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
	stored := map[string]bool{}
	for _, one := range references(r.old) {
		stored[one.String()] = true
	}
	var findings []Finding
	for _, one := range references(r.configuration) {
		if one.namespace == r.configuration.Namespace {
			continue
		}
		level := Deny
		if stored[one.String()] {
			level = Warn
		}
		findings = append(findings, Finding{level, finding.Mistake{
			Path:  one.place + ".namespace",
			Cause: one.String() + " is in another namespace, which agents do not read",
			Hint: "copy it to namespace " + r.configuration.Namespace +
				", or run the agents and the webhook with --allow-cross-namespace-properties",
		}})
	}
	return findings
}

// reference is an object whose values discoveryProperties contain.
type reference struct{ place, kind, resource, namespace, name string }

func (r reference) String() string { return r.kind + " " + r.namespace + "/" + r.name }

// references returns the references of a Configuration, which may be nil, in order.
func references(configuration *v0.Configuration) []reference {
	if configuration == nil {
		return nil
	}
	var found []reference
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.ValueFrom == nil {
			continue
		}
		place := fmt.Sprintf("spec.discoveryHandler.discoveryProperties[%d].valueFrom.", i)
		add := func(one reference, key *v0.KeyReference) {
			if key != nil {
				one.namespace, one.name = cmp.Or(key.Namespace, configuration.Namespace), key.Name
				found = append(found, one)
			}
		}
		add(reference{place: place + "secretKeyRef", kind: "Secret", resource: "secrets"}, property.ValueFrom.SecretKeyRef)
		add(reference{place: place + "configMapKeyRef", kind: "ConfigMap", resource: "configmaps"}, property.ValueFrom.ConfigMapKeyRef)
	}
	return found
}
