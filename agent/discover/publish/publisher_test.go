package publish

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// bench is an API server with one Configuration.
type bench struct {
	t             *testing.T
	client        dynamic.Interface
	configuration *v0.Configuration
}

func newBench(t *testing.T) *bench {
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, client: client}
	object, err := client.Resource(v0.ConfigurationResource).
		Namespace(apitest.Namespace(t, config)).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v0.GroupVersion.String(), "kind": "Configuration", "metadata": map[string]any{"name": "door"},
			"spec": map[string]any{"discoveryHandler": map[string]any{"name": "h"}, "capacity": int64(2)},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.configuration = &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: "door", UID: object.GetUID()},
		Spec:       v0.ConfigurationSpec{Capacity: 2},
	}
	return b
}

// publisher runs a publisher for a node until the test ends.
func (b *bench) publisher(node string) *Publisher {
	b.t.Helper()
	log := slog.New(slog.NewTextHandler(b.t.Output(), nil))
	store, err := instances.New(b.client, node, func(types.NamespacedName) {}, log)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { store.Run(ctx, func(instances.Event, *v0.Instance) {}) })
	b.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	if !cache.WaitForCacheSync(ctx.Done(), store.HasSynced) {
		b.t.Fatal("not synced")
	}
	return New(b.client, store, node, v0.FieldManagerAgent, log)
}

func (b *bench) publish(p *Publisher, devices ...streams.Device) Result {
	b.t.Helper()
	snapshot := streams.Snapshot{Settled: true}
	for _, d := range devices {
		d.Online = true
		snapshot.Devices = append(snapshot.Devices, d)
	}
	result, err := p.Publish(b.t.Context(), b.configuration, snapshot)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *bench) name() types.NamespacedName {
	return types.NamespacedName{Namespace: b.configuration.Namespace, Name: b.configuration.Name}
}

func (b *bench) get(name string) *v0.Instance {
	b.t.Helper()
	object, err := b.client.Resource(v0.InstanceResource).Namespace(b.configuration.Namespace).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	instance, err := instances.Read(object)
	if err != nil {
		b.t.Fatal(err)
	}
	return instance
}

func (b *bench) patch(name, patch string) {
	b.t.Helper()
	if _, err := b.client.Resource(v0.InstanceResource).Namespace(b.configuration.Namespace).
		Patch(b.t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "claim"}); err != nil {
		b.t.Fatal(err)
	}
}

func TestDeviceWithTheSameHashGetsALongerName(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	short := v0.InstanceName("door", "foo0", "", true)
	// Another node's device has the name. This node's watch does not show it.
	taken := intent(b.configuration, streams.Device{Key: streams.Key{ID: "with the same hash", Shared: true}}, "node-b", short)
	if _, err := b.publisher("node-b").create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	result := b.publish(p, camera)
	if want := v0.LongInstanceName("door", "foo0", "", true); len(result.Devices) != 1 || result.Devices[0].Instance.Name != want {
		t.Errorf("published %+v, want %s", result.Devices, want)
	}
	if other := b.get(
		short,
	); !slices.Equal(other.Spec.Nodes, []string{"node-b"}) ||
		other.Annotations[v0.AnnotationDeviceID] != "with the same hash" {
		t.Errorf("the other device's Instance was taken over: %+v", other)
	}
}

func TestClaimSurvivesEveryWrite(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	name := b.publish(p, camera).Devices[0].Instance.Name
	b.patch(name, `[{"op":"add","path":"/spec/deviceUsage","value":{"`+name+`-1":"node-a"}}]`)
	b.configuration.Spec.Capacity = 1 // below the claimed slot
	b.eventually("the capacity is reduced", func() bool {
		b.publish(p, camera)
		return b.get(name).Spec.Capacity == 1
	})
	if now := b.get(name); now.Spec.DeviceUsage[name+"-1"] != "node-a" {
		t.Errorf("the claim is lost: %+v", now.Spec)
	}
}

func (b *bench) eventually(what string, holds func() bool) {
	b.t.Helper()
	apitest.EventuallyTrue(b.t, what, holds)
}

func TestNoDeletionAfterAnotherNodeJoined(t *testing.T) {
	b := newBench(t)
	a, other := b.publisher("node-a"), b.publisher("node-b")
	name := b.publish(a, camera).Devices[0].Instance.Name
	stale := b.get(name)
	b.publish(other, camera)
	if v := a.drop(t.Context(), nodeView{node: "node-a", configuration: b.configuration}, stale); v.err != nil { // decides on an old version
		t.Fatal(v.err)
	}
	now := b.get(name)
	if now.UID != stale.UID || !slices.Equal(now.Spec.Nodes, []string{"node-b"}) {
		t.Fatalf("the Instance is %s with nodes %v, want %s with node-b", now.UID, now.Spec.Nodes, stale.UID)
	}
	if _, labelled := now.Labels[v0.NodeLabel("node-a")]; labelled {
		t.Error("the label of the node that left still exists")
	}
	if now.Spec.BrokerProperties["URL"] == "" || now.Spec.Capacity != 2 {
		t.Errorf("the node that left removed fields: %+v", now.Spec)
	}
}

// The agent keeps only a part of an Instance's metadata. What it writes is based on that,
// and changes nothing of the rest.
func TestPublishingKeepsMetadataOfOthers(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	name := b.publish(p, camera).Devices[0].Instance.Name
	controller := b.get(name).OwnerReferences[0].UID
	b.patch(name, `[{"op":"replace","path":"/metadata/labels","value":{"tool":"1"}},`+
		`{"op":"replace","path":"/metadata/annotations","value":{"tool":"2"}},`+
		`{"op":"add","path":"/metadata/finalizers","value":["example.com/tool"]},`+
		`{"op":"remove","path":"/metadata/ownerReferences/0/controller"},`+
		`{"op":"add","path":"/metadata/ownerReferences/0","value":{"apiVersion":"v1","kind":"ConfigMap","name":"tool","uid":"u-1"}}]`)
	var object *unstructured.Unstructured
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		b.publish(p, camera)
		var err error
		object, err = b.client.Resource(v0.InstanceResource).Namespace(b.configuration.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		_, labeled := object.GetLabels()[v0.NodeLabel("node-a")]
		return labeled, nil
	}); err != nil {
		t.Fatalf("the node did not join again: %v", err)
	}
	if labels, annotations := object.GetLabels(), object.GetAnnotations(); labels["tool"] != "1" || annotations["tool"] != "2" ||
		annotations[v0.AnnotationDeviceID] != camera.ID || labels[v0.LabelConfiguration] != "door" {
		t.Errorf("labels and annotations: %v, %v", labels, annotations)
	}
	owners := object.GetOwnerReferences()
	if len(owners) != 2 || owners[0].Name != "tool" || owners[0].APIVersion != "v1" ||
		owners[1].UID != controller || owners[1].Name != "door" || !ptr.Deref(owners[1].Controller, false) {
		t.Errorf("owners: %+v", owners)
	}
	if finalizers := object.GetFinalizers(); !slices.Equal(finalizers, []string{"example.com/tool"}) {
		t.Errorf("finalizers: %v", finalizers)
	}
}
