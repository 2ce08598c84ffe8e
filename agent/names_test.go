package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// asAgent returns a configuration for the agent of a node, as the token of its Pod gives it.
func (w *world) asAgent(nodeName string) *rest.Config {
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:akri-system:akri-agent",
		Groups:   []string{"system:masters"}, // this is not about RBAC
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {nodeName}},
	}
	return config
}

// installAgentPolicy installs the policy for agents, which no other test of this package
// is subject to.
func (w *world) installAgentPolicy() {
	w.t.Helper()
	text, err := os.ReadFile("../config/policy/agents.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.t.Fatal(err)
		}
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
		if strings.HasSuffix(object.GetKind(), "Binding") {
			resource.Resource = "validatingadmissionpolicybindings"
		}
		if _, err := w.client.Resource(resource).Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			_ = w.client.Resource(resource).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
		})
	}
}

// localDevice returns the Instance that the agent of a node creates for a local device.
func localDevice(name, configuration, id, nodeName string, properties map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Instance",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{v0.AnnotationDeviceID: id},
			"labels": map[string]any{v0.LabelConfiguration: configuration, v0.NodeLabel(nodeName): ""}},
		"spec": map[string]any{"configurationName": configuration, "cdiName": v0.CDIName(configuration, name), "capacity": int64(1),
			"shared": false, "nodes": []any{nodeName}, "brokerProperties": properties},
	}}
}

// The agent of a compromised node creates the Instance of a device that is local to
// another node, before that node's agent does: the name can be computed.
func TestInventedLocalDevice(t *testing.T) {
	w := newWorld(t)
	w.installAgentPolicy()
	evil, err := dynamic.NewForConfig(w.asAgent("evil"))
	if err != nil {
		t.Fatal(err)
	}
	invented := evil.Resource(v0.InstanceResource).Namespace(w.namespace)
	apitest.Eventually(t, "the policy is enforced", func() string {
		_, err := invented.Create(t.Context(), localDevice("probe-1", "probe", "x", "another", nil),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return "the agent of a node writes for another node"
		}
		return ""
	})
	n := w.node("a")
	protected := *w
	protected.config = w.asAgent(n.name)
	n.world = &protected

	w.configure("cam", "descriptions: [taken, free]", nil)
	name, long := v0.InstanceName("cam", "taken", n.name, false), v0.LongInstanceName("cam", "taken", n.name, false)
	if _, err := invented.Create(t.Context(), localDevice(name, "cam", "taken", "evil", map[string]any{"LD_PRELOAD": "/evil.so"}),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.startHandler(false)
	n.startAgent()
	w.eventually("the node publishes both devices", func() bool { return len(n.sink.of(w.namespace, "cam")) == 2 })
	for _, d := range n.sink.of(w.namespace, "cam") {
		if d.Properties["LD_PRELOAD"] != "" || d.ID == "taken" && d.Instance.Name != long {
			t.Errorf("offers %s with %v, want %s without the properties that another node invented", d.Instance.Name, d.Properties, long)
		}
	}
}

// The Instances of a Configuration may have the name of another Configuration. In two
// namespaces, the older of both is served.
func TestConfigurationNamedLikeAnInstance(t *testing.T) {
	victim, other := newWorld(t), newWorld(t)
	n := victim.node("n")
	n.startAgent()
	n.startHandler(true)
	name := v0.InstanceName("victim", "foo0", "", true)
	neighbor := v0.InstanceName("victim", "foo1", "", true)
	victim.configure("victim", "descriptions: [foo0]", nil)
	victim.configure(neighbor, "descriptions: [foo1]", nil) // in the same namespace
	victim.awaitDevices("foo0", "foo1")
	time.Sleep(time.Second) // creationTimestamp has whole seconds
	other.configure(name, "descriptions: [bar0]", nil)
	other.eventually("it is not served", func() bool {
		failures := other.failures(name)
		return len(failures) == 1 && strings.Contains(failures[0].Message, victim.namespace+"/victim is older") &&
			strings.Contains(failures[0].Message, v0.ResourceName(name))
	})
	if len(other.instances()) != 0 || len(n.sink.of(other.namespace, name)) != 0 {
		t.Error("both are served")
	}
	victim.remove("victim")
	other.awaitDevices("bar0")
	other.eventually("the failure is gone", func() bool { return len(other.failures(name)) == 0 })
	time.Sleep(time.Second)                                 // creation times are in whole seconds
	victim.configure("victim", "descriptions: [foo0]", nil) // now it is the younger one
	victim.eventually("it is not served", func() bool {
		failures := victim.failures("victim")
		return len(failures) == 1 && strings.Contains(failures[0].Message, other.namespace+"/"+name+" is older")
	})
}
