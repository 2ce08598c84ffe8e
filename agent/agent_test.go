package agent_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

func TestDeviceBecomesAnInstance(t *testing.T) {
	w := newWorld(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), // connections are pooled for the process
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
	a := w.node("a")
	defer a.startAgent()()
	configuration := w.configure("echo", "descriptions: [foo0, foo1]", nil) // before its handler
	defer a.startHandler(true)()

	foo0 := w.awaitDevices("foo0", "foo1")["foo0"]
	if foo0.Name != "echo-8120fe" || foo0.Spec.ConfigurationName != "echo" || foo0.Spec.CDIName != "akri.sh/echo=8120fe" ||
		!foo0.Spec.Shared ||
		foo0.Spec.Capacity != 2 {
		t.Errorf("identity: %+v", foo0.Spec)
	}
	want := map[string]string{debugecho.Property: "foo0", v0.PropertyDisplayName: "foo0", "OPERATOR": "me"}
	if !maps.Equal(foo0.Spec.BrokerProperties, want) {
		t.Errorf("properties are %v, want %v", foo0.Spec.BrokerProperties, want)
	}
	if !slices.Equal(foo0.Spec.Nodes, []string{a.name}) {
		t.Errorf("nodes are %v", foo0.Spec.Nodes)
	}
	if foo0.Labels[v0.LabelConfiguration] != "echo" {
		t.Errorf("labels are %v", foo0.Labels)
	}
	if owners := foo0.OwnerReferences; len(owners) != 1 || owners[0].UID != configuration.GetUID() || !*owners[0].Controller ||
		owners[0].BlockOwnerDeletion != nil { // as the original Akri writes it
		t.Errorf("owners are %+v", foo0.OwnerReferences)
	}
	if len(foo0.Spec.DeviceUsage) != 0 {
		t.Errorf("free slots are listed: %v", foo0.Spec.DeviceUsage)
	}
	w.eventually("the sink knows both devices", func() bool {
		devices := a.sink.of(w.namespace, "echo")
		return len(devices) == 2 && devices[0].ID == "foo0" && devices[0].Online && devices[0].Capacity == 2 &&
			devices[0].Properties["OPERATOR"] == "me"
	})

	a.setAvailability("OFFLINE")
	w.awaitDevices()
	w.eventually("the sink knows that they are gone", func() bool { return len(a.sink.of(w.namespace, "echo")) == 0 })
	a.setAvailability("")
	w.awaitDevices("foo0", "foo1")

	w.remove("echo")
	w.awaitDevices()
}

// A Configuration that is being deleted has no devices, however long a finalizer holds it,
// and no place among the others: its name is free for one in another namespace.
func TestTerminatingConfiguration(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	a := w.node("a")
	a.startAgent()
	a.startHandler(true)
	created := w.configure("held", "descriptions: [foo0]", nil).GetCreationTimestamp()
	w.awaitDevices("foo0")
	w.eventually("a Configuration that is created now is younger", func() bool { return time.Now().Unix() > created.Unix() })
	other.configure("held", "descriptions: [foo1]", nil)
	other.eventually("the younger of two with one name is not served", func() bool { return len(other.failures("held")) == 1 })

	client := w.client.Resource(v0.ConfigurationResource).Namespace(w.namespace)
	hold := func(ctx context.Context, finalizers string) {
		if _, err := client.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`),
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	hold(t.Context(), `["example.com/hold"]`)
	t.Cleanup(func() { hold(context.Background(), "null") })
	w.remove("held")
	w.awaitDevices()
	other.awaitDevices("foo1")
	w.eventually("the sink has only the served one's devices", func() bool {
		return len(a.sink.of(w.namespace, "held")) == 0 && len(a.sink.of(other.namespace, "held")) == 1
	})
	if held, err := client.Get(t.Context(), "held", metav1.GetOptions{}); err != nil || held.GetDeletionTimestamp() == nil {
		t.Errorf("the Configuration is no longer being deleted: %v", err)
	}
}

func TestRestartsWriteNothing(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	stopAgent := a.startAgent()
	stopHandler := a.startHandler(false)
	w.configure("echo", "descriptions: [foo0, foo1]", nil)
	w.awaitDevices("foo0", "foo1")
	before := versions(w.instances())
	online := func() bool {
		devices := a.sink.of(w.namespace, "echo")
		return len(devices) == 2 && devices[0].Online && devices[1].Online
	}

	stopAgent()
	stopAgent = a.startAgent() // it remembers the handler, or the handler registers again
	w.eventually("the new agent knows the devices", online)
	stopHandler()
	stopHandler = a.startHandler(false)
	stopHandler()
	stopAgent()
	*a.sink = recorder{}
	stopAgent = a.startAgent()
	w.eventually("the new agent keeps the devices without a handler", func() bool { return len(a.sink.of(w.namespace, "echo")) == 2 })
	if online() {
		t.Error("devices that no handler has reported are online")
	}
	stopHandler = a.startHandler(false)
	w.eventually("the handler is back", online)
	if after := versions(w.instances()); !maps.Equal(before, after) {
		t.Errorf("restarts wrote Instances:\nbefore %v\nafter  %v", before, after)
	}
	stopAgent()
	stopHandler()
}

func versions(instances map[string]*v0.Instance) map[string]string {
	all := map[string]string{}
	for id, instance := range instances {
		all[id] = string(instance.UID) + "@" + instance.ResourceVersion
	}
	return all
}

func TestInstancesAreRepaired(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	a.startHandler(true)
	w.configure("echo", "descriptions: [foo0]", nil)
	foo0 := w.awaitDevices("foo0")["foo0"]
	client := w.client.Resource(v0.InstanceResource).Namespace(w.namespace)

	for name, patch := range map[string]string{
		"a property is changed":  `{"spec":{"brokerProperties":{"DEBUG_ECHO_DESCRIPTION":"x"}}}`,
		"a property is added":    `{"spec":{"brokerProperties":{"EXTRA":"x"}}}`,
		"the capacity is raised": `{"spec":{"capacity":7}}`,
		"the node is removed":    `{"spec":{"nodes":[]}}`,
		"the labels are removed": `{"metadata":{"labels":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Patch(
				t.Context(),
				foo0.Name,
				types.MergePatchType,
				[]byte(patch),
				metav1.PatchOptions{FieldManager: "user"},
			); err != nil {
				t.Fatal(err)
			}
			w.eventually("the edit is reverted", func() bool {
				now := w.instances()["foo0"]
				return now.Spec.Capacity == 2 && maps.Equal(now.Spec.BrokerProperties, foo0.Spec.BrokerProperties) &&
					slices.Equal(now.Spec.Nodes, foo0.Spec.Nodes) && maps.Equal(now.Labels, foo0.Labels)
			})
		})
	}
	if err := client.Delete(t.Context(), foo0.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("a deleted Instance is created again", func() bool {
		now := w.instances()["foo0"]
		return now != nil && now.UID != foo0.UID
	})
}

func TestEditsOfTheConfigurationTakeEffect(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	a.startHandler(true)
	w.configure("echo", "descriptions: [foo0, foo1]", nil)
	before := w.awaitDevices("foo0", "foo1")

	w.configure("echo", "descriptions: [foo0, bar0]", func(spec map[string]any) {
		spec["capacity"] = int64(3)
		spec["brokerProperties"] = map[string]any{"OTHER": "you"}
	})
	w.eventually("details, capacity and properties have changed", func() bool {
		now := w.instances()
		foo0 := now["foo0"]
		return len(now) == 2 && now["bar0"] != nil && foo0 != nil && foo0.UID == before["foo0"].UID && foo0.Spec.Capacity == 3 &&
			maps.Equal(foo0.Spec.BrokerProperties,
				map[string]string{debugecho.Property: "foo0", v0.PropertyDisplayName: "foo0", "OTHER": "you"})
	})
	w.configure("echo", "descriptions: [foo0, bar0]", func(spec map[string]any) { spec["capacity"] = int64(1) })
	w.eventually("the capacity is reduced", func() bool { return w.instances()["foo0"].Spec.Capacity == 1 })

	w.configure("echo", "discriptions: [foo0]", nil)
	w.eventually("the error is reported", func() bool { return len(w.failures("echo")) == 1 })
	if found := w.instances(); len(found) != 2 {
		t.Errorf("an error in the details removed %d Instances", 2-len(found))
	}
	t.Log(w.failures("echo")[0])
	w.configure("echo", "descriptions: [foo0]", nil)
	w.awaitDevices("foo0")
	w.eventually("the failure is gone", func() bool { return len(w.failures("echo")) == 0 })
}

func TestNodesShareAnInstance(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	for _, n := range []*node{a, b} {
		n.startAgent()
		n.startHandler(true)
	}
	w.configure("echo", "descriptions: [foo0]", nil)
	nodes := func() []string {
		if instance := w.instances()["foo0"]; instance != nil {
			return slices.Sorted(slices.Values(instance.Spec.Nodes))
		}
		return nil
	}
	w.eventually("both nodes are listed", func() bool { return slices.Equal(nodes(), []string{a.name, b.name}) })
	first := w.instances()["foo0"]

	w.configure("echo", "descriptions: [foo0]", func(spec map[string]any) { spec["capacity"] = int64(5) })
	w.eventually("the capacity has changed", func() bool {
		now := w.instances()["foo0"]
		return now.Spec.Capacity == 5
	})
	settled := w.instances()["foo0"].ResourceVersion
	time.Sleep(300 * time.Millisecond) // no write may follow
	if now := w.instances()["foo0"].ResourceVersion; now != settled {
		t.Errorf("the agents keep writing: resourceVersion %s, then %s", settled, now)
	}

	a.setAvailability("OFFLINE")
	w.eventually("one node is left", func() bool { return slices.Equal(nodes(), []string{b.name}) })
	a.setAvailability("")
	w.eventually("it is back", func() bool { return len(nodes()) == 2 })
	b.setAvailability("OFFLINE")
	w.eventually("the other node is left", func() bool { return slices.Equal(nodes(), []string{a.name}) })
	if now := w.instances()["foo0"]; now.UID != first.UID || now.Spec.Capacity != 5 {
		t.Errorf("the Instance was replaced: %+v", now)
	}
	a.setAvailability("OFFLINE")
	w.awaitDevices()
}

func TestPropertiesComeFromSecretsAndAreWatched(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	seen := make(chan map[string][]byte, 10)
	a.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, "asker", asker{seen}, discovery.Options{Dir: a.directory, Logger: slog.New(slog.DiscardHandler)})
	})
	w.configure("ask", "", func(spec map[string]any) {
		spec["discoveryHandler"] = map[string]any{"name": "asker", "discoveryProperties": []any{
			map[string]any{"name": "PLAIN", "value": "text"},
			map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "login", "key": "password"}}},
			map[string]any{
				"name":      "HINT",
				"valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "hints", "key": "hint", "optional": true}},
			},
		}}
	})
	w.eventually("the missing Secret is reported", func() bool { return len(w.failures("ask")) == 1 })
	t.Log(w.failures("ask")[0])

	w.put("Secret", "secrets", "login", map[string]any{"stringData": map[string]any{"password": "one"}})
	want := func(expected map[string]string) {
		t.Helper()
		for {
			select {
			case properties := <-seen:
				texts := map[string]string{}
				for name, value := range properties {
					texts[name] = string(value)
				}
				if maps.Equal(texts, expected) {
					return
				}
			case <-time.After(deadline):
				t.Fatalf("the handler got no request with %v", expected)
			}
		}
	}
	want(map[string]string{"PLAIN": "text", "PASSWORD": "one"})
	w.eventually("the failure is gone", func() bool { return len(w.failures("ask")) == 0 })
	w.put("Secret", "secrets", "login", map[string]any{"stringData": map[string]any{"password": "two"}})
	want(map[string]string{"PLAIN": "text", "PASSWORD": "two"})
	w.put("ConfigMap", "configmaps", "hints", map[string]any{"binaryData": map[string]any{"hint": "/w=="}})
	want(map[string]string{"PLAIN": "text", "PASSWORD": "two", "HINT": "\xff"})
}

// asker reports the properties of its requests.
type asker struct{ seen chan<- map[string][]byte }

func (a asker) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	a.seen <- request.Properties
	if err := send(nil); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
