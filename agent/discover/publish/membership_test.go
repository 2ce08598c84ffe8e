package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
)

// object returns an Instance with its managed fields, or nil.
func (b *bench) object(name string) *unstructured.Unstructured {
	b.t.Helper()
	list, err := b.client.Resource(v0.InstanceResource).Namespace(b.configuration.Namespace).List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i]
		}
	}
	return nil
}

// size returns the bytes of an Instance, as the API server stores and sends it.
func (b *bench) size(name string) int {
	b.t.Helper()
	data, err := json.Marshal(b.object(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(data)
}

// cold returns the publisher of a node whose watch shows nothing.
func (b *bench) cold(node string) *Publisher {
	b.t.Helper()
	store, err := instances.New(b.client, node, func(types.NamespacedName) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	return New(b.client, store, node, v0.FieldManagerAgent, slog.New(slog.DiscardHandler))
}

// all calls do for each node at the same time, again when it says so. It returns how
// long each node took, the shortest first.
func (b *bench) all(nodes []string, do func(context.Context, *Publisher) (again time.Time, err error)) []time.Duration {
	b.t.Helper()
	var running sync.WaitGroup
	took := make([]time.Duration, len(nodes))
	for i, node := range nodes {
		running.Go(func() {
			p, began := b.cold(node), time.Now()
			for {
				again, err := do(b.t.Context(), p)
				if err != nil {
					b.t.Errorf("node %s: %v", node, err)
				}
				if again.IsZero() || err != nil {
					break
				}
				time.Sleep(time.Until(again))
			}
			took[i] = time.Since(began)
		})
	}
	running.Wait()
	slices.Sort(took)
	return took
}

// Many nodes join a shared device at the same time, and leave it. Each costs a hundred
// bytes, and leaves nothing behind.
func TestManyNodes(t *testing.T) {
	const maxBytesPerNode = 100
	b := newBench(t)
	first := b.publisher("node-0000")
	name := b.publish(first, camera).Devices[0].Instance.Name
	alone := b.size(name)
	var nodes []string
	for i := range 40 {
		nodes = append(nodes, fmt.Sprintf("node-%04d", i+1))
	}
	snapshot := streams.Snapshot{Devices: known(camera), Settled: true}
	joins := b.all(nodes, func(ctx context.Context, p *Publisher) (time.Time, error) {
		result, err := p.Publish(ctx, b.configuration, snapshot)
		return result.Next, err
	})
	together := b.size(name)
	if got := b.get(name); len(got.Spec.Nodes) != len(nodes)+1 || len(got.Labels) != len(nodes)+2 || got.Spec.Nodes[0] != "node-0000" {
		t.Fatalf("%d nodes, %d labels, the first is %s", len(got.Spec.Nodes), len(got.Labels), got.Spec.Nodes[0])
	}
	perNode := (together - alone) / len(nodes)
	t.Logf("%d bytes per node; joining took %v, half of the nodes less than %v", perNode, joins[len(joins)-1], joins[len(joins)/2])
	if perNode > maxBytesPerNode {
		t.Errorf("each node costs %d bytes, want at most %d:\n%s", perNode, maxBytesPerNode, managers(b.object(name)))
	}

	stale := b.get(name)
	departures := b.all(nodes, func(ctx context.Context, p *Publisher) (time.Time, error) {
		v := p.drop(ctx, nodeView{node: p.node, configuration: b.configuration}, stale)
		return v.until, v.err
	})
	t.Logf("leaving took %v", departures[len(departures)-1])
	if got := b.get(name); !slices.Equal(got.Spec.Nodes, []string{"node-0000"}) || len(got.Labels) != 2 {
		t.Errorf("nodes are %v, labels %v", got.Spec.Nodes, got.Labels)
	}
	if left := b.size(name) - alone; left > 100 { // a longer generation and time
		t.Errorf("nodes that have left left %d bytes behind:\n%s", left, managers(b.object(name)))
	}
}

func managers(object *unstructured.Unstructured) string {
	text, _ := json.MarshalIndent(object.GetManagedFields(), "", " ")
	return string(text)
}

// A node that loses sight of a device while its container has a slot stays in the
// selection of its agent until the slot is free, also over a restart of the agent.
func TestLeavingWithASlot(t *testing.T) {
	b := newBench(t)
	a, other := b.publisher("node-a"), b.publisher("node-b")
	name := b.publish(a, camera).Devices[0].Instance.Name
	b.publish(other, camera)
	set := func(slot int, owner string) {
		b.patch(name, fmt.Sprintf(`[{"op":"add","path":"/spec/deviceUsage/%s-%d","value":%q}]`, name, slot, owner))
	}
	set(0, "node-a")
	labeled := func(node string) bool {
		object := b.object(name)
		_, found := object.GetLabels()[v0.NodeLabel(node)]
		return found
	}
	sees := func(nodes ...string) func() bool {
		return func() bool { return b.object(name) != nil && slices.Equal(b.get(name).Spec.Nodes, nodes) }
	}
	b.eventually("the claim is seen", func() bool { return a.instances.Get(b.of(name)).Spec.DeviceUsage[v0.SlotName(name, 0)] != "" })
	b.publish(a)
	if !sees("node-b")() || !labeled("node-a") {
		t.Fatalf("the node left with its slot: %v, labels %v", b.get(name).Spec.Nodes, b.get(name).Labels)
	}
	b.publish(other, camera)

	restarted := b.publisher("node-a")
	if result := b.publish(restarted); len(result.Devices) != 0 || !labeled("node-a") {
		t.Fatalf("after a restart, it offers %v, and the labels are %v", result.Devices, b.get(name).Labels)
	}
	b.publish(restarted, camera)
	b.eventually("it joins again", sees("node-b", "node-a"))
	b.publish(restarted)
	b.eventually("it leaves again", sees("node-b"))

	// Now nobody sees the device.
	b.eventually("node-b leaves", func() bool { b.publish(other); return len(b.get(name).Spec.Nodes) == 0 })
	if labeled("node-b") || b.get(name).Spec.DeviceUsage[v0.SlotName(name, 0)] != "node-a" {
		t.Errorf("labels %v, slots %v", b.get(name).Labels, b.get(name).Spec.DeviceUsage)
	}
	uid := b.get(name).UID
	b.publish(other, camera)
	b.eventually("the device is back, and its slot still held", func() bool { b.publish(other, camera); return sees("node-b")() })
	if now := b.get(name); now.UID != uid || now.Spec.DeviceUsage[v0.SlotName(name, 0)] != "node-a" {
		t.Errorf("the Instance is %s with slots %v", now.UID, now.Spec.DeviceUsage)
	}
	b.eventually("node-b leaves again", func() bool { b.publish(other); return len(b.get(name).Spec.Nodes) == 0 })
	set(0, "")
	b.eventually("the last node without a slot deletes it", func() bool { b.publish(restarted); return b.object(name) == nil })
}

// A device that is lost and found again before the watch shows either is published.
func TestFlapFasterThanTheWatch(t *testing.T) {
	b := newBench(t)
	name := b.publish(b.publisher("node-a"), camera).Devices[0].Instance.Name
	other := b.cold("node-b")
	for range 3 {
		b.publish(other, camera)
		if got := b.get(name).Spec.Nodes; !slices.Equal(got, []string{"node-a", "node-b"}) {
			t.Fatalf("node-b sees the device, but nodes are %v", got)
		}
		b.publish(other)
		if got := b.get(name).Spec.Nodes; !slices.Equal(got, []string{"node-a"}) {
			t.Fatalf("node-b has lost the device, but nodes are %v", got)
		}
	}
}

func (b *bench) of(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: b.configuration.Namespace, Name: name}
}

// An Instance of a Configuration that was deleted and created again is left to garbage
// collection. That is no failure of the device.
func TestConfigurationCreatedAgain(t *testing.T) {
	b := newBench(t)
	a, other := b.publisher("node-a"), b.publisher("node-b")
	name := b.publish(a, camera).Devices[0].Instance.Name
	b.publish(other, camera)
	uid := b.get(name).UID
	b.configuration.UID = "the-next-one"
	b.eventually("node-a knows that node-b sees the device", func() bool { return len(a.instances.Get(b.of(name)).Spec.Nodes) == 2 })
	result := b.publish(a, camera)
	if len(result.Refused) != 0 || b.get(name).UID != uid {
		t.Errorf("refused: %v", result.Refused)
	}
	if err := b.client.Resource(v0.InstanceResource).Namespace(b.configuration.Namespace).
		Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil { // as garbage collection does
		t.Fatal(err)
	}
	b.eventually("the new Configuration has its own", func() bool {
		b.publish(a, camera)
		object := b.object(name)
		return object != nil && object.GetOwnerReferences()[0].UID == "the-next-one"
	})
}
