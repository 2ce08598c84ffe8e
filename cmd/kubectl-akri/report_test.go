package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// planted is the beginning of all credentials in the cluster.
const planted = "PLANTED-"

// unpack returns the files of an archive without its directory.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decompressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(decompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "akri-report/")] = string(content)
	}
}

// plant creates an installation with a credential in each place that a report reads
// or must not read.
func (w *world) plant() {
	w.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: akri-secret, labels: {app.kubernetes.io/part-of: akri}}
stringData: {any: PLANTED-secret}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: akri-config, labels: {app.kubernetes.io/part-of: akri}}
data: {any: PLANTED-configmap}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam}
spec:
  discoveryHandler:
    name: onvif
    discoveryDetails: "password: PLANTED-details"
    discoveryProperties: [{name: ANY, value: PLANTED-property}]
  brokerProperties: {PASSWORD: PLANTED-everywhere}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
    data: {any: PLANTED-template-of-a-value}
  - apiVersion: v1
    kind: Secret
    metadata: {name: "{{INSTANCE_NAME}}"}
    stringData: {any: PLANTED-template}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: akri-agent, labels: {app.kubernetes.io/name: akri-agent}}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: akri-agent}}
  template:
    metadata: {labels: {app.kubernetes.io/name: akri-agent}}
    spec:
      containers:
      - name: agent
        image: agent:v1.0.0
        args: [--proxy-password, PLANTED-argument]
        env: [{name: API_TOKEN, value: PLANTED-variable}]
---
apiVersion: v1
kind: Pod
metadata: {name: akri-agent-x, labels: {app.kubernetes.io/name: akri-agent}}
spec: {nodeName: node-a, containers: [{name: agent, image: agent:v1.0.0}]}
---
apiVersion: v1
kind: Event
metadata: {name: refused}
involvedObject: {apiVersion: akri.sh/v0, kind: Instance, name: cam-1, namespace: ` + w.Namespace + `}
type: Warning
reason: Refused
message: "the device refuses PLANTED-everywhere, and https://user:PLANTED-url@camera/"
`)
	var pod corev1.Pod
	w.Read("akri-agent-x", &pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", RestartCount: 1}}
	if err := w.Status().Update(w.T.Context(), &pod); err != nil {
		w.T.Fatal(err)
	}
	w.Instance("cam", "cam-1", map[string]string{"ROOM": "hall", "API_KEY": "PLANTED-instance"})
}

// TestReport also shows what cannot be read: there is no kubelet here.
func TestReport(t *testing.T) {
	w := newWorld(t)
	w.plant()
	w.register(t)
	w.startController()
	w.waitReady("cam")
	archive := filepath.Join(t.TempDir(), "report.tar.gz")
	w.run("", "report", "-n", w.Namespace, "-f", archive).want(t, 0, archive, "parts are missing", "look through it")
	files := unpack(t, archive)
	for name, content := range files {
		if strings.Contains(strings.ToUpper(strings.ReplaceAll(content, "PLANTED-template-of-a-value", "")), planted) {
			t.Errorf("%s has a credential:\n%s", name, content)
		}
		if strings.Contains(content, "caBundle:") && !strings.Contains(content, "caBundle: REDACTED") {
			t.Errorf("%s has the CA:\n%s", name, content)
		}
	}
	ours := "akri/" + w.Namespace + "/"
	for name, want := range map[string]string{
		"README.md":                           "left out",
		"versions.txt":                        "akri-agent-x",
		"versions.yaml":                       "component: agent",
		"tree.txt":                            "cam-1",
		"events.txt":                          "Warning Refused Instance " + w.Namespace + "/cam-1 (1 times, ): \"the device refuses REDACTED,",
		"nodes.yaml":                          "nodes:",
		ours + "configurations/cam.yaml":      "PASSWORD: REDACTED",
		ours + "instances/cam-1.yaml":         "ROOM: hall",
		ours + "objects/configmap/cam-1.yaml": "akri.sh/instance: cam-1",
		"system/daemonsets/akri-agent.yaml":   "value: REDACTED",
		"system/pods/akri-agent-x.yaml":       "nodeName: node-a",
		"cluster/customresourcedefinitions/instances.akri.sh.yaml":              "Established",
		"cluster/validatingwebhookconfigurations/akri-" + w.Namespace + ".yaml": "path: REDACTED",
		"errors.txt": "logs/akri-agent-x/agent.previous.log: ",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%q is not in %s:\n%s", want, name, files[name])
		}
	}
	if files["cluster/customresourcedefinitions/instances.akri.sh.yaml"] == "" ||
		strings.Contains(files["cluster/customresourcedefinitions/instances.akri.sh.yaml"], "openAPIV3Schema") {
		t.Error("the CRD is missing, or has its schema")
	}
	for name := range files {
		if strings.Contains(name, "secret") || strings.Contains(name, "system/configmaps") {
			t.Errorf("%s must not be read", name)
		}
	}
	if strings.Contains(files[ours+"objects/configmap/cam-1.yaml"], "\ndata:") {
		t.Error("the data of an object is in the report")
	}
	if t.Failed() {
		t.Log(slices.Sorted(maps.Keys(files)), files["errors.txt"])
	}
	w.run("", "report", "-n", w.Namespace, "-f", archive).want(t, 2, "create the archive", "exists")
	w.run("", "report", "-n", w.Namespace, "-f", filepath.Join(t.TempDir(), "late.tar.gz"), "--timeout", "1ns").want(t, 0, "parts are missing")
}

// register creates a webhook registration that is deleted after the test, and never
// called.
func (w *world) register(t *testing.T) {
	t.Helper()
	name := "akri-" + w.Namespace
	w.Apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ` + name + `}
webhooks:
- name: never.akri.sh
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig:
    caBundle: ` + base64.StdEncoding.EncodeToString(w.Config.CAData) + `
    service: {namespace: ` + w.Namespace + `, name: s, path: /planted-path}
`)
	t.Cleanup(func() {
		var registration unstructured.Unstructured
		registration.SetAPIVersion("admissionregistration.k8s.io/v1")
		registration.SetKind("ValidatingWebhookConfiguration")
		registration.SetName(name)
		if err := w.Delete(context.Background(), &registration); err != nil { // the context of t is cancelled here
			t.Error(err)
		}
	})
}

// What the user may not read is listed, and the rest is in the archive.
func TestReportWithFewPermissions(t *testing.T) {
	w := newWorld(t)
	w.plant()
	author := w.as("author", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [list]}]`)
	archive := filepath.Join(t.TempDir(), "report.tar.gz")
	author.run("", "report", "-n", w.Namespace, "-f", archive).want(t, 0, archive, "parts are missing")
	files := unpack(t, archive)
	if !strings.Contains(files["akri/"+w.Namespace+"/instances/cam-1.yaml"], "kind: Instance") {
		t.Errorf("the Instance is missing: %v", slices.Sorted(maps.Keys(files)))
	}
	for _, want := range []string{
		"Configurations of all namespaces: ", "daemonsets.apps: ", "cannot list resource \"pods\"", "validatingwebhookconfigurations.", "nodes: ",
	} {
		if !strings.Contains(files["errors.txt"], want) {
			t.Errorf("%q is not in errors.txt:\n%s", want, files["errors.txt"])
		}
	}
}

func TestTerminationMessagesAreDropped(t *testing.T) {
	object := map[string]any{
		"kind": "Pod", "spec": map[string]any{"x": "PLANTED-1"},
		"status": map[string]any{"containerStatuses": []any{map[string]any{
			"lastState": map[string]any{"terminated": map[string]any{"message": "PLANTED-2", "exitCode": int64(1)}},
		}}},
	}
	kept := metadataAndStatus(object)
	terminated := kept["status"].(map[string]any)["containerStatuses"].([]any)[0].(map[string]any)["lastState"].(map[string]any)["terminated"]
	if kept["spec"] != nil || len(terminated.(map[string]any)) != 1 {
		t.Errorf("got %v", kept)
	}
}
