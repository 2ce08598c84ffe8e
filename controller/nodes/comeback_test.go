package nodes_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
)

// agent is the part of a real agent that publishes devices, again after each
// change that it watches. It stops at the end of the test, or with end.
type agent struct {
	*claims.Executor
	end func()
}

func (w *world) agent(node string, configuration *v0.Configuration, devices ...streams.Device) *agent {
	w.T.Helper()
	api, err := dynamic.NewForConfig(w.Config)
	if err != nil {
		w.T.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	log := slog.New(slog.DiscardHandler)
	store, err := instances.New(api, node, func(types.NamespacedName) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, log)
	if err != nil {
		w.T.Fatal(err)
	}
	publisher := publish.New(api, store, node, v0.FieldManagerAgent, log)
	snapshot := streams.Snapshot{Settled: true}
	for _, d := range devices {
		d.Online = true
		snapshot.Devices = append(snapshot.Devices, d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { store.Run(ctx, func(instances.Event, *v0.Instance) {}) })
	running.Go(func() {
		if !cache.WaitForCacheSync(ctx.Done(), store.HasSynced) {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			if _, err := publisher.Publish(ctx, configuration, snapshot); err != nil && ctx.Err() == nil {
				w.T.Errorf("agent of %s: %v", node, err)
			}
		}
	})
	end := sync.OnceFunc(func() { cancel(); running.Wait() })
	w.T.Cleanup(end)
	return &agent{claims.New(api, store, v0.FieldManagerAgent), end}
}

func (w *world) configuration(name string) *v0.Configuration {
	w.T.Helper()
	configuration := &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "h"}, Capacity: 2},
	}
	if err := w.Create(w.T.Context(), configuration); err != nil {
		w.T.Fatal(err)
	}
	return configuration
}

// seenBy waits until exactly these nodes see an Instance.
func (w *world) seenBy(name string, want ...string) {
	w.T.Helper()
	w.Eventually(name+" seen", func() string {
		instance := w.instance(name)
		if instance == nil {
			return "it does not exist"
		}
		got := slices.Sorted(slices.Values(instance.Spec.Nodes))
		if !slices.Equal(got, want) {
			return fmt.Sprintf("by %q", got)
		}
		for _, node := range want {
			if _, labelled := instance.Labels[v0.NodeLabel(node)]; !labelled {
				return "the label of " + node + " is missing"
			}
		}
		return ""
	})
}

func TestAnAgentThatReturnsPublishesItselfAgain(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	doors := w.configuration("doors") // whose Instances the agents maintain
	shared := streams.Device{Key: streams.Key{ID: "foo0", Shared: true}, Properties: map[string]string{"URL": "x"}}
	local := streams.Device{Key: streams.Key{ID: "foo0"}}
	sharedName, localName := v0.InstanceName("doors", "foo0", "", true), v0.InstanceName("doors", "foo0", b, false)
	w.agent(a, doors, shared)
	w.seenBy(sharedName, a)
	dying := w.agent(b, doors, shared, local)
	w.seenBy(sharedName, a, b)
	w.seenBy(localName, b)
	device := types.NamespacedName{Namespace: w.Namespace, Name: sharedName}
	if got := dying.Claim(t.Context(), device, slots.Claim{Owners: map[int]v0.Owner{1: {Node: b}}}); got.Outcome != slots.Written {
		t.Fatal(got.Err)
	}

	w.run(nodes.Options{NotReadyGrace: short})
	dying.end()
	w.condition(b, corev1.ConditionUnknown)
	w.seenBy(sharedName, a)
	w.deleted(localName)
	if usage := w.instance(sharedName).Spec.DeviceUsage; usage[v0.SlotName(sharedName, 1)] != "" {
		t.Errorf("the slot of the lost node is still held: %v", usage)
	}

	// The agent starts before the kubelet reports that the node is Ready.
	back := w.agent(b, doors, shared, local)
	w.seenBy(sharedName, a, b)
	w.seenBy(localName, b)
	w.condition(b, corev1.ConditionTrue)
	w.seenBy(sharedName, a, b)
	if got := back.Claim(t.Context(), device, slots.Claim{Owners: map[int]v0.Owner{1: {Node: b}}}); got.Outcome != slots.Written {
		t.Fatal(got.Err)
	}
	c := w.node("c")
	w.device("cams-other", true, []string{a, c})
	w.condition(c, corev1.ConditionUnknown)
	w.off("cams-other", c) // later than b would have been
	w.seenBy(sharedName, a, b)
	if usage := w.instance(sharedName).Spec.DeviceUsage; usage[v0.SlotName(sharedName, 1)] != v0.SlotOwner(b) {
		t.Errorf("the claim of the agent that returned is lost: %v", usage)
	}

	// An agent may be alive although the kubelet is dead: it adds its node again at once.
	before := w.instance(sharedName).Generation
	w.condition(b, corev1.ConditionUnknown)
	w.Eventually("removed and added again", func() string {
		if now := w.instance(sharedName); now.Generation < before+2 {
			return "nothing has changed"
		}
		return ""
	})
	w.seenBy(sharedName, a, b)
}
