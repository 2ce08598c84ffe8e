package webhook

import (
	"fmt"
	"strings"
	"testing"
)

// referring returns a Configuration of that capacity with a discovery property from the key
// k of an object.
func referring(capacity int, field, reference string) string {
	return fmt.Sprintf(`{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, spec: {capacity: %d, discoveryHandler: `+
		`{name: onvif, discoveryProperties: [{name: A, value: a}, {name: B, valueFrom: {%s: {key: k, %s}}}]}}}`, capacity, field, reference)
}

// Agents do not read other namespaces by default: there would be no devices.
func TestReferences(t *testing.T) {
	const secret = "spec.discoveryHandler.discoveryProperties[1].valueFrom.secretKeyRef.namespace: " +
		"Secret default/s is in another namespace, which agents do not read; copy it to namespace "
	for name, tc := range map[string]struct {
		field, reference string
		allowed          bool
		refused          string
	}{
		"no namespace":                 {field: "secretKeyRef", reference: "name: s"},
		"the own":                      {field: "secretKeyRef", reference: "name: s, namespace: OWN"},
		"another":                      {field: "secretKeyRef", reference: "name: s, namespace: default", refused: secret},
		"another, which agents read":   {field: "secretKeyRef", reference: "name: s, namespace: default", allowed: true},
		"a ConfigMap":                  {field: "configMapKeyRef", reference: "name: m, namespace: default", refused: "ConfigMap default/m"},
		"a ConfigMap that agents read": {field: "configMapKeyRef", reference: "name: m, namespace: default", allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.CrossNamespaceProperties = tc.allowed
			w.guard()
			admin := w.as("")
			expect(t, admin.apply(referring(1, tc.field, strings.Replace(tc.reference, "OWN", w.Namespace, 1))), tc.refused)
			if warnings := admin.warnings.take(); warnings != "" {
				t.Errorf("warned: %q", warnings)
			}
		})
	}
}

// What was stored before the webhook refused it does not block other changes.
func TestStoredReferences(t *testing.T) {
	w := newWorld(t)
	admin := w.as("")
	expect(t, admin.apply(referring(1, "secretKeyRef", "name: s, namespace: default")), "")
	w.guard()
	expect(t, admin.apply(referring(2, "secretKeyRef", "name: s, namespace: default")), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "Secret default/s is in another namespace") {
		t.Errorf("warned: %q", warnings)
	}
	for name, tc := range map[string]struct{ field, reference, refused string }{
		"another Secret":    {"secretKeyRef", "name: other, namespace: default", "Secret default/other is in another namespace"},
		"another namespace": {"secretKeyRef", "name: s, namespace: kube-system", "Secret kube-system/s is in another namespace"},
		"another kind":      {"configMapKeyRef", "name: s, namespace: default", "ConfigMap default/s is in another namespace"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, admin.apply(referring(2, tc.field, tc.reference)), tc.refused) })
	}
}

// The handler gets one value for each name.
func TestEqualPropertyNames(t *testing.T) {
	w := newWorld(t)
	object := `{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, spec: {discoveryHandler: {name: onvif, ` +
		`discoveryProperties: [{name: A, value: a}, {name: B, value: b}, {name: A, value: c}]}}}`
	expect(t, w.as("").apply(object), "two properties have the same name: remove one")
}
