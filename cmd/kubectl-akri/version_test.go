package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/version"
)

// TestVersion shows Pods that cannot be asked: there is no kubelet here.
func TestVersion(t *testing.T) {
	w := newWorld(t)
	w.run("", "version", "-n", w.Namespace).want(t, 0, version.String(), "Kubernetes", "no controller and no agent")
	pod := func(name, labels, image string) string {
		return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {` + labels + `}}
spec: {containers: [{name: program, image: "` + image + `"}]}
`
	}
	w.Apply(strings.Join([]string{
		pod("controller", "app.kubernetes.io/name: akri-controller, app.kubernetes.io/version: 1.2.3", "akri.sh/controller:dev"),
		pod("agent", "app.kubernetes.io/name: akri-agent", "registry:5000/akri/agent:v1.2.2@sha256:"+digest),
		pod("handler", "app.kubernetes.io/name: akri-udev-discovery, app.kubernetes.io/part-of: akri", "registry:5000/discovery"),
		pod("ended", "app.kubernetes.io/name: akri-agent", "agent:v1.0.0"),
		pod("broker", "app.kubernetes.io/name: broker", "broker:v1.0.0"),
	}, "---"))
	var ended corev1.Pod
	w.Read("ended", &ended)
	ended.Status.Phase = corev1.PodFailed
	if err := w.Status().Update(t.Context(), &ended); err != nil {
		t.Fatal(err)
	}
	got := w.run("", "version", "-n", w.Namespace)
	got.want(t, 0, "controller  v1.2.3 (label)", "agent       v1.2.2 (image)", "udev        unknown", "handler: Pod handler is Pending",
		"1 Pod of the agent: v1.2.2 is older than v1.2.3", "this kubectl-akri", "!broker", "!ended", "!webhook")
	w.run("", "version", "-n", w.Namespace, "--check").want(t, 1, "v1.2.2")
	w.run("", "version", "--client").want(t, 0, version.String(), "!Kubernetes")
	w.run("", "version", "-o", "json", "-n", w.Namespace).want(t, 0, `"component": "controller"`, `"skew"`)
	w.run("", "version", "-o", "xml").want(t, 2, "use json or yaml")

	var versions view.Versions
	if err := json.Unmarshal([]byte(w.run("", "version", "-o", "json", "-n", w.Namespace).out), &versions); err != nil {
		t.Fatal(err)
	}
	if len(versions.Parts) != 3 || versions.Client != version.Get() || versions.Parts[1].Source != view.FromImage {
		t.Errorf("got %+v", versions)
	}
	author := w.as("author", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [list]}]`)
	author.run("", "version", "-n", w.Namespace).want(t, 1, version.String(), "Kubernetes", "list the Pods of Akri")
	run(t, "", "version", "--kubeconfig", "/nowhere").want(t, 1, version.String(), "/nowhere")
}

// TestVersionOfKubernetes names what Akri does without in a cluster, without calling it
// unhealthy: the agent of an old kubelet cannot be asked here.
func TestVersionOfKubernetes(t *testing.T) {
	w := newWorld(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	if err := w.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Delete(context.Background(), node) }) // the cluster is that of other tests, too
	node.Status.NodeInfo.KubeletVersion = "v1.34.4+k3s1"
	if err := w.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	w.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: agent, labels: {app.kubernetes.io/name: akri-agent}}
spec: {nodeName: ` + w.Namespace + `, containers: [{name: program, image: "agent:v1.2.3"}]}
`)
	const lacks = "a kubelet (v1.34.4+k3s1) has no Pods API"
	w.run("", "version", "-n", w.Namespace).want(t, 0, "note: "+lacks)
	w.run("", "version", "-n", w.Namespace, "-o", "json").want(t, 0, `"lacking"`, lacks)
}

// TestUnaskedKubelets checks that an agent that was asked knows better than the version.
func TestUnaskedKubelets(t *testing.T) {
	got := unaskedKubelets([]view.Part{
		{Component: view.Agent, Kubelet: "v1.36.1", Source: view.FromProgram},
		{Component: view.Agent, Kubelet: "v1.36.2", Source: view.FromImage},
		{Component: view.Agent, Kubelet: "v1.36.3"},
		{Component: "udev", Kubelet: "v1.36.4"},
	})
	if want := []string{"v1.36.2", "v1.36.3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// A running program says its version itself.
func TestVersionOfProgram(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(version.NewCollector("agent"))
	observer := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "akri_agent_observer"}, []string{"state"})
	observer.WithLabelValues("pods-api").Set(0)
	observer.WithLabelValues("api-server").Set(1)
	registry.MustRegister(observer)
	program := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(program.Close)
	foreign := httptest.NewServer(promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{}))
	t.Cleanup(foreign.Close)
	noise := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n")) }))
	t.Cleanup(noise.Close)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent", Labels: map[string]string{"app.kubernetes.io/name": "akri-agent"}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{
			Image: "agent:v0.0.1", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8089}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for name, tc := range map[string]struct {
		target, version, source, problem string
		api                              bool
	}{
		"asked":           {program.Listener.Addr().String(), version.String(), view.FromProgram, "", true},
		"another project": {foreign.Listener.Addr().String(), "v0.0.1", view.FromImage, "program of another project", false},
		"not metrics":     {noise.Listener.Addr().String(), "v0.0.1", view.FromImage, "text format", false},
		"metrics are off": {"", "v0.0.1", view.FromImage, "nothing listens on port 8089", false},
	} {
		t.Run(name, func(t *testing.T) {
			part := readPart(t.Context(), forwarder(t, tc.target), pod)
			if part.Version != tc.version || part.Source != tc.source || part.NoPodsAPI != tc.api ||
				!strings.Contains(part.Problem, tc.problem) || (part.Problem == "") != (tc.problem == "") {
				t.Errorf("got %+v", part)
			}
		})
	}
}

func TestTagOf(t *testing.T) {
	for image, want := range map[string]string{
		"akri.sh/agent:v1.2.3": "v1.2.3", "akri.sh/agent:dev": "", "localhost:5000/agent": "", "agent": "", "": "",
		"agent:v1.2.3@sha256:" + digest: "v1.2.3",
	} {
		if got := tagOf(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
