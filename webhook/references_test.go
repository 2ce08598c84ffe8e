package webhook

import (
	"fmt"
	"strings"
	"testing"
)

// Authors are warned of discoveryProperties that agents do not read by default.
func TestReferences(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const want = "spec.discoveryHandler.discoveryProperties[1].valueFrom.secretKeyRef.namespace: agents read default only if they run with " +
		"--allow-cross-namespace-properties"
	for name, tc := range map[string]struct{ namespace, want string }{
		"none":    {"", ""},
		"the own": {", namespace: " + w.Namespace, ""},
		"another": {", namespace: default", want},
	} {
		t.Run(name, func(t *testing.T) {
			properties := fmt.Sprintf("[{name: A, value: a}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k%s}}}]", tc.namespace)
			object := fmt.Sprintf(`{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, `+
				`spec: {discoveryHandler: {name: onvif, discoveryProperties: %s}}}`, properties)
			expect(t, admin.apply(object), "")
			if warnings := admin.warnings.take(); !strings.Contains(warnings, tc.want) || tc.want == "" && warnings != "" {
				t.Errorf("warned: %q, want %q", warnings, tc.want)
			}
		})
	}
}

// The handler gets one value for each name.
func TestEqualPropertyNames(t *testing.T) {
	w := newWorld(t)
	object := `{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, spec: {discoveryHandler: {name: onvif, ` +
		`discoveryProperties: [{name: A, value: a}, {name: B, value: b}, {name: A, value: c}]}}}`
	expect(t, w.as("").apply(object), "two properties have the same name: remove one")
}
