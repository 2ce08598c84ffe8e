package webhook

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// nodeAgent is the part of an agent that writes Instances, with the permissions of
// config/rbac only.
type nodeAgent struct {
	*world
	node          string
	configuration *v0.Configuration
	publisher     *publish.Publisher
	claims        *claims.Executor
}

func (w *world) nodeAgent(node string, configuration *v0.Configuration) *nodeAgent {
	w.Helper()
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: agentAccount, Groups: []string{"system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	store, err := instances.New(api, node, func(types.NamespacedName) {}, log)
	if err != nil {
		w.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() { store.Run(w.Context(), func(instances.Event, *v0.Instance) {}); close(stopped) }()
	w.Cleanup(func() { <-stopped }) // the test's context is canceled before
	w.Eventually("the agent's cache is filled", func() string {
		if !store.HasSynced() {
			return "not yet"
		}
		return ""
	})
	return &nodeAgent{
		world: w, node: node, configuration: configuration,
		publisher: publish.New(api, store, node, v0.FieldManagerAgent, log), claims: claims.New(api, store, v0.FieldManagerAgent),
	}
}

// sees publishes the devices that the node sees until an Instance satisfies a
// condition. The API server must refuse nothing.
func (a *nodeAgent) sees(name string, holds func(*v0.Instance) bool, devices ...streams.Device) {
	a.Helper()
	snapshot := streams.Snapshot{Settled: true}
	for _, d := range devices {
		d.Online = true
		snapshot.Devices = append(snapshot.Devices, d)
	}
	a.Eventually("node "+a.node+" has published "+name, func() string {
		result, err := a.publisher.Publish(a.Context(), a.configuration, snapshot)
		if err != nil || len(result.Refused) > 0 {
			a.Fatalf("node %s: %v, refused: %v", a.node, err, result.Refused)
		}
		have := a.read(name)
		if !holds(have) {
			return fmt.Sprintf("it is %+v", have)
		}
		return ""
	})
}

// read returns an Instance, or nil.
func (w *world) read(name string) *v0.Instance {
	w.Helper()
	object, err := w.instances(w.as("").api).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	instance, err := instances.Read(object)
	if err != nil {
		w.Fatal(err)
	}
	return instance
}

func seenBy(names ...string) func(*v0.Instance) bool {
	return func(have *v0.Instance) bool { return have != nil && slices.Equal(have.Spec.Nodes, names) }
}

// Agents do all that they do with the permissions of config/rbac, under the policies.
func TestAgentsWorkUnderThePolicies(t *testing.T) {
	w := newWorld(t)
	w.grantRoles("rbac/agent.yaml", "akri-agent", "akri.sh/aggregate-to-agent")
	w.guardAgents()
	w.install("policy/instances.yaml", nil)
	if err := w.as("").apply(configuration("", "")); err != nil {
		t.Fatal(err)
	}
	stored, err := w.as("").api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).Get(t.Context(), "cam", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cam := &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "cam", UID: stored.GetUID()},
		Spec:       v0.ConfigurationSpec{Capacity: 2, BrokerProperties: map[string]string{"OPERATOR": "me"}},
	}
	device := streams.Device{Key: streams.Key{ID: "foo", Shared: true}, Properties: map[string]string{"URL": "1"}}
	local := streams.Device{Key: streams.Key{ID: "usb"}}
	name := v0.InstanceName("cam", "foo", "", true)
	a, b, c := w.nodeAgent("a", cam), w.nodeAgent("b", cam), w.nodeAgent("c", cam)

	a.sees(name, seenBy("a"), device, local)
	b.sees(name, seenBy("a", "b"), device, local)
	c.sees(name, seenBy("a", "b", "c"), device)
	c.sees(name, seenBy("a", "b", "c"), device) // nothing to do
	key, slot := types.NamespacedName{Namespace: w.Namespace, Name: name}, map[int]v0.Owner{1: {Node: "b"}}
	if got := b.claims.Claim(t.Context(), key, slots.Claim{Owners: slot}); got.Outcome != slots.Written {
		t.Fatalf("claim: %+v", got)
	}

	// The author describes the device. The others follow, and restore their entries.
	device.Properties = map[string]string{"URL": "2"}
	cam.Spec.Capacity = 3
	describes := func(url string) func(*v0.Instance) bool {
		return func(have *v0.Instance) bool {
			return have.Spec.Capacity == 3 && maps.Equal(have.Spec.BrokerProperties, map[string]string{"URL": url, "OPERATOR": "me"})
		}
	}
	a.sees(name, describes("2"), device, local)
	if err := w.edit(name, `{"metadata":{"labels":{"node.akri.sh/c":null,"akri.sh/configuration":"other"}}}`); err != nil {
		t.Fatal(err)
	}
	c.sees(name, func(have *v0.Instance) bool {
		_, found := have.Labels[v0.NodeLabel("c")]
		return found && have.Labels[v0.LabelConfiguration] == "cam"
	}, device)

	// Agents leave in any order; the next one is the author.
	b.sees(name, seenBy("a", "c"), local)
	a.sees(name, seenBy("c"), local)
	device.Properties = map[string]string{"URL": "3"}
	c.sees(name, describes("3"), device)
	if got := b.claims.Release(t.Context(), key, slot); got.Outcome != slots.Written {
		t.Fatalf("release by a node that no longer sees the device: %+v", got)
	}
	c.sees(name, func(have *v0.Instance) bool { return have == nil })
	a.sees(v0.InstanceName("cam", "usb", "a", false), func(have *v0.Instance) bool { return have == nil })
}

// edit patches an Instance as an administrator.
func (w *world) edit(name, patch string) error {
	_, err := w.instances(w.as("").api).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// The controller does what it does with the permissions of config/rbac, under the
// policies.
func TestTheControllerWorksUnderThePolicies(t *testing.T) {
	w := newWorld(t)
	w.guardInstances()
	w.guardStatus()
	w.control()
	err := w.as("").apply(configuration(
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}"}, data: {k: "{{ INSTANCE_PROPERTIES.K }}"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ CONFIGURATION_NAME }}-all"}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.device("cam", "cam-1", `{K: v}`)
	w.Eventually("both statuses are written", func() string {
		for resource, name := range map[schema.GroupVersionResource]string{v0.ConfigurationResource: "cam", v0.InstanceResource: "cam-1"} {
			object, err := w.as("").api.Resource(resource).Namespace(w.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if recorded, _, _ := unstructured.NestedSlice(object.Object, "status", "resources"); len(recorded) != 1 {
				return fmt.Sprintf("the status of %s is %v", name, object.Object["status"])
			}
		}
		return ""
	})
}
