package handlers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
)

// TestHTTP finds devices in the index of another program's web server, and removes them
// when they no longer respond as expected.
func TestHTTP(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "http")
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	const port = "8099"
	address := func(name string) string { return fmt.Sprintf("http://%s:%s/%s", bridgeAddress, port, name) }
	write("index.json", fmt.Sprintf(`{"devices": [{"url": %q, "serial": "a1"}, {"url": %q, "serial": "b2"}]}`, address("a"), address("b")))
	write("a", `{"state": "ready", "model": "X1"}`)
	write("b", `{"state": "starting"}`)
	w.peer([]string{"PYTHONUNBUFFERED=1"}, "python3", "-m", "http.server", port, "--bind", bridgeAddress, "--directory", root)
	w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: web}
spec:
  discoveryHandler:
    name: http
    discoveryDetails: |
      index: {url: "` + address("index.json") + `", items: devices, address: url, id: serial}
      expect: {path: state, values: [ready]}
      properties: {MODEL: model}
      intervalSeconds: 1
      misses: 2
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: broker
        image: akri.local/workload:1
        resources: {limits: {"{{RESOURCE_NAME}}": "1"}}
`)
	found := w.await("HTTP_URL", address("a"))
	for name, instance := range found {
		if instance.Spec.BrokerProperties["MODEL"] != "X1" {
			t.Errorf("the Instance is %+v", instance)
		}
		w.eventually("both nodes on the Instance", func() string {
			if now := w.instances()[name]; len(now.Spec.Nodes) != 2 {
				return fmt.Sprintf("it is %+v", now)
			}
			return ""
		})
		w.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/"+name)
	}
	write("b", `{"state": "ready", "model": "X2"}`)
	w.await("MODEL", "X1", "X2")
	write("a", `{"state": "off"}`)
	w.await("MODEL", "X2")
	w.eventually("the deletion of the broker", func() string {
		if pods := w.kubectl("get", "pods", "--output=name"); strings.Count(pods, "\n") != 1 {
			return pods
		}
		return ""
	})
}
