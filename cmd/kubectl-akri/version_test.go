package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/internal/version"
)

func TestVersion(t *testing.T) {
	w := newWorld(t)
	w.run("", "version", "-n", w.Namespace).want(t, 0, version.String(), "Kubernetes", "note: Akri's controller is not in namespace")
	pod := func(name, labels, image string) string {
		return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {` + labels + `}}
spec: {containers: [{name: program, image: "` + image + `"}]}
`
	}
	w.Apply(strings.Join([]string{
		pod("controller", "app.kubernetes.io/name: akri-controller, app.kubernetes.io/part-of: akri, app.kubernetes.io/version: 1.2.3",
			"akri.sh/controller:dev"),
		pod("agent", "app.kubernetes.io/name: akri-agent, app.kubernetes.io/part-of: akri", "registry:5000/akri/agent:v1.2.2@sha256:"+digest),
		pod("handler", "app.kubernetes.io/name: akri-udev-discovery, app.kubernetes.io/part-of: akri", "registry:5000/discovery"),
		pod("ended", "app.kubernetes.io/name: akri-agent, app.kubernetes.io/part-of: akri", "agent:v1.0.0"),
		pod("broker", "app.kubernetes.io/name: broker", "broker:v1.0.0"),
	}, "---"))
	var ended corev1.Pod
	w.Read("ended", &ended)
	ended.Status.Phase = corev1.PodFailed
	if err := w.Status().Update(t.Context(), &ended); err != nil {
		t.Fatal(err)
	}
	got := w.run("", "version", "-n", w.Namespace)
	got.want(t, 0, "controller  v1.2.3 ", "agent       v1.2.2 ", "udev        unknown", "handler: Pod handler is Pending",
		"the version of 1 Pod (agent) is v1.2.2, but that of Pod controller is v1.2.3", "this kubectl-akri", "!broker", "!ended", "!webhook")
	w.run("", "version", "-n", w.Namespace, "--check").want(t, 1, "v1.2.2")
	w.run("", "version", "--client").want(t, 0, version.String(), "!Kubernetes")
	w.run("", "version", "-o", "json", "-n", w.Namespace).want(t, 0, `"component": "controller"`,
		`"image": "registry:5000/akri/agent:v1.2.2@sha256:`, `"skew"`)
	w.run("", "version", "-o", "xml").want(t, 2, "use json or yaml")

	author := w.as("author", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [list]}]`)
	author.run("", "version", "-n", w.Namespace).want(t, 0, version.String(), "Kubernetes",
		"no permission to list Pods, so")
	run(t, "", "version", "--kubeconfig", "/nowhere").want(t, 1, version.String(), "/nowhere")
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
