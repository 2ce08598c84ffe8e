package e2e_test

import (
	"strings"
	"testing"
)

// The webhook, which creates its own certificate, serves requests as soon as the
// installation is ready. It rejects a bad Configuration and names the remedy.
func TestAdmission(t *testing.T) {
	w := newWorld(t)
	const unusable = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: unusable}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{ INSTANCE_NAME }}-svc"}
    spec: {ports: [{port: "{{ INSTANCE_PROPERTIES.PORT }}"}]}
`
	apply := []string{"--namespace", w.namespace, "apply", "--server-side", "-f", "-"}
	_, err := w.KubectlInput(t.Context(), []byte(unusable), apply...)
	if err == nil || !strings.Contains(err.Error(), "write {{ INSTANCE_PROPERTIES.PORT | int }}") {
		t.Errorf("got %v, want the webhook's remedy", err)
	}
	if _, err := w.KubectlInput(t.Context(), []byte(strings.Replace(unusable, "PORT }}", "PORT | int }}", 1)), apply...); err != nil {
		t.Error(err)
	}
}
