package install

import (
	"fmt"
	"strings"
	"testing"
)

// probeConfiguration, formatted with devices, has a Service for each device.
const probeConfiguration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: probe, namespace: probe}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [%s]"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {ports: [{port: 80}], selector: "{{LABEL_SELECTOR}}"}
`

// testWebhookDown checks what docs/admission.md says about emergencies: while no replica
// of the webhook responds, new and changed Configurations are rejected, everything that
// exists keeps working, and a label admits Configurations of a namespace.
func (w *world) testWebhookDown(t *testing.T, b brokers) {
	w.kubectl("create", "namespace", "probe")
	w.apply(fmt.Sprintf(probeConfiguration, "p0"))
	w.awaitReady("probe", "probe", 1)

	w.kubectl("--namespace", w.release.Namespace, "scale", "deployment/akri-webhook", "--replicas=0")
	w.eventually("the webhook has no endpoints", func() string {
		return w.kubectl("--namespace", w.release.Namespace, "get", "endpointslices", "--selector=kubernetes.io/service-name=akri-webhook",
			"--output=jsonpath={.items[*].endpoints[*].addresses}")
	})
	_, err := w.KubectlInput(t.Context(), fmt.Appendf(nil, probeConfiguration, "p0, p1"), "apply", "--server-side", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), `failed calling webhook "configurations.akri.sh"`) {
		t.Errorf("without the webhook, a changed Configuration: %v, want it rejected", err)
	}
	w.kubectl("--namespace=probe", "label", "configuration", "probe", "changed=label")

	services := w.list("probe", "services")
	w.kubectl("--namespace=probe", "delete", "service", services[0].Metadata.Name)
	w.eventually("the controller repairs", func() string {
		if now := w.list("probe", "services"); len(now) != 1 || now[0].Metadata.UID == services[0].Metadata.UID {
			return fmt.Sprintf("the Services are %v", now)
		}
		return ""
	})

	w.kubectl("label", "namespace", "probe", "akri.sh/admission=skip")
	w.apply(fmt.Sprintf(probeConfiguration, "p0, p1"))
	w.awaitReady("probe", "probe", 2)
	w.kubectl("label", "namespace", "probe", "akri.sh/admission-")
	w.kubectl("--namespace=probe", "delete", "configuration", "probe", "--timeout="+timeout.String())

	w.kubectl("--namespace", w.release.Namespace, "scale", "deployment/akri-webhook", "--replicas=1")
	w.kubectl("--namespace", w.release.Namespace, "rollout", "status", "--timeout="+timeout.String(), "deployment/akri-webhook")
	w.apply(fmt.Sprintf(probeConfiguration, "p2"))
	w.awaitReady("probe", "probe", 1)
	w.kubectl("delete", "namespace", "probe", "--timeout="+timeout.String())
	w.assertUntouched(b)
}
