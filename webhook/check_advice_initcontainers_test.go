package webhook

import (
	"strings"
	"testing"
)

// Authors are warned of init containers that request devices.
func TestInitContainers(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	pod := func(init string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {selector: {matchLabels: {a: b}}, ` +
			`template: {metadata: {labels: {a: b}}, spec: {initContainers: [` + init + `], containers: [{name: app, image: app}]}}}}`
	}
	const want = "spec.instanceBrokerResources[0].spec.template.spec.initContainers[1]: the init container b requests a device, "
	for name, tc := range map[string]struct{ init, want string }{
		"by the name of the Instance": {`resources: {limits: {"akri.sh/{{ INSTANCE_NAME }}": 1}}`, want},
		"by RESOURCE_NAME":            {`resources: {limits: {"{{ RESOURCE_NAME }}": 1}}`, want},
		"another resource":            {`resources: {limits: {"example.com/fpga": 1}}`, ""},
		"a sidecar":                   {`restartPolicy: Always, resources: {limits: {"{{ RESOURCE_NAME }}": 1}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, admin.apply(configuration(pod(`{name: a, image: a}, {name: b, image: b, `+tc.init+`}`), "")), "")
			expectWarning(t, admin.warnings.take(), tc.want, "init container")
		})
	}
}

func TestInitContainersOfLegacyFields(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	expect(t, admin.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  brokerSpec:
    brokerPodSpec:
      initContainers: [{name: b, image: b, resources: {limits: {"{{PLACEHOLDER}}": 1}}}]
      containers: [{name: app, image: app, args: ["{{ NODE }}"]}]
`), "")
	warnings := admin.warnings.take()
	for _, want := range []string{
		"spec.brokerSpec.brokerPodSpec.initContainers[0]: the init container b requests a device",
		"spec.brokerSpec.brokerPodSpec.containers[0].args[0]: this text is not replaced",
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warned: %q, want %q", warnings, want)
		}
	}
}
