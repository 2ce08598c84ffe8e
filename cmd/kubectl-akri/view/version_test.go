package view

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/internal/version"
)

func part(component, pod, node, has string) Part {
	return Part{Component: component, Pod: pod, Node: node, Kubelet: "v1.36.1", Version: has}
}

func TestPrintVersions(t *testing.T) {
	stopped := part("onvif", "akri-onvif-discovery-x", "node2", "v1.2.2")
	stopped.Problem = "Pod\nis Pending"
	unknown := Part{Component: Agent, Pod: "akri-agent-c", Problem: "Pod akri-agent-c is Pending"}
	versions := &Versions{
		Client: version.Info{Version: "v1.2.2-3-g2469d3f", Platform: "linux/amd64"}, Kubernetes: "v1.36.1", Namespace: "akri-system",
		Notes: []string{"Kubernetes v1.36.1 is special"},
		Parts: []Part{
			stopped, part(Agent, "akri-agent-b", "node2", "v1.2.2"), part(Agent, "akri-agent-a", "node1", "v1.2.3"), unknown,
			part(Webhook, "akri-webhook-a", "node1", "v1.2.3"),
			part(Controller, "akri-controller-a", "node1", "v1.2.3"),
		},
	}
	versions.Judge()
	if versions.Healthy() {
		t.Error("versions that differ are healthy")
	}
	var out strings.Builder
	if err := versions.Text(&out); err != nil {
		t.Fatal(err)
	}
	const want = `kubectl-akri|v1.2.2-3-g2469d3f|linux/amd64
Kubernetes|v1.36.1

COMPONENT|VERSION|POD|NODE|KUBELET
controller|v1.2.3|akri-controller-a|node1|v1.36.1
webhook|v1.2.3|akri-webhook-a|node1|v1.36.1
agent|unknown|akri-agent-c|none|-
agent|v1.2.3|akri-agent-a|node1|v1.36.1
agent|v1.2.2|akri-agent-b|node2|v1.36.1
onvif|v1.2.2|akri-onvif-discovery-x|node2|v1.36.1

note: Kubernetes v1.36.1 is special
note: akri-agent-c: Pod akri-agent-c is Pending
note: akri-onvif-discovery-x: Pod is Pending
skew: the version of 1 Pod (agent) is v1.2.2, but that of Pod akri-controller-a is v1.2.3: update the image, ` +
		`or wait until the rollout has completed: kubectl get pods -n akri-system
skew: the version of 1 Pod (onvif) is v1.2.2, but that of Pod akri-controller-a is v1.2.3: update the image, ` +
		`or wait until the rollout has completed: kubectl get pods -n akri-system
skew: the version of this kubectl-akri is v1.2.2-3-g2469d3f, but that of Pod akri-controller-a is v1.2.3: install the version of the cluster
`
	if got := regexp.MustCompile("  +").ReplaceAllString(out.String(), "|"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSkew(t *testing.T) {
	const dev = "v0.0.0-g2469d3f"
	for name, tc := range map[string]struct {
		client  string
		parts   []Part
		healthy bool
		want    string // part of the only line
	}{
		"equal": {"v1.2.3", []Part{part(Controller, "c", "n", "v1.2.3"), part(Agent, "a", "n", "v1.2.3")}, true, ""},
		"a newer client": {"v1.3.0", []Part{part(Controller, "c", "n", "v1.2.3"), part(Agent, "a", "n", "v1.2.3")}, false,
			"the version of this kubectl-akri is v1.3.0, but that of Pod c is v1.2.3"},
		"another agent": {"v1.2.3", []Part{part(Controller, "c", "n", "v1.2.3"), part(Agent, "a", "n", "v1.2.4")}, false,
			"the version of 1 Pod (agent) is v1.2.4, but that of Pod c is v1.2.3"},
		"no controller": {"v1.2.3", []Part{part(Agent, "a", "n", "v1.2.3"), part("onvif", "o", "n", "v1.2.4")}, false,
			"the version of 1 Pod (onvif) is v1.2.4, but that of Pod a is v1.2.3"},
		"an unknown version": {dev, []Part{part(Controller, "c", "n", dev), {Component: Agent, Pod: "a", Problem: "Pending"}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			versions := &Versions{Client: version.Info{Version: tc.client}, Namespace: "ns", Parts: tc.parts}
			versions.Judge()
			if versions.Healthy() != tc.healthy {
				t.Errorf("healthy: %v, notes %q", versions.Healthy(), versions.Notes)
			}
			if lines := strings.Join(versions.Skew, "\n"); (lines == "") != (tc.want == "") || !strings.Contains(lines, tc.want) ||
				strings.Contains(lines, "\n") {
				t.Errorf("got %q, want %q", lines, tc.want)
			}
		})
	}
}

func TestVersionOf(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, tc := range []struct{ image, label, want string }{
		{"akri.sh/agent:v1.2.3", "", "v1.2.3"}, {"agent:v1.2.3" + digest, "", "v1.2.3"}, {"agent:v1.2.3", "1.2.2", "v1.2.3"},
		{"agent:dev", "1.2.3", "v1.2.3"}, {"agent" + digest, "v1.2.3", "v1.2.3"},
		{"akri.sh/agent:dev", "", ""}, {"localhost:5000/agent", "", ""}, {"agent", "", ""}, {"", "", ""},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: tc.image}}}}
		if tc.label != "" {
			pod.Labels = map[string]string{"app.kubernetes.io/version": tc.label}
		}
		if got := VersionOf(pod); got != tc.want {
			t.Errorf("%q with label %q: %q, want %q", tc.image, tc.label, got, tc.want)
		}
	}
}
