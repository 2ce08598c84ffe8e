package deviceplugin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
)

var (
	nodesSchedules = flag.Int("nodes.schedules", 100, "number of random schedules of TestNodes, with AKRI_FULL=1")
	nodesSeed      = flag.Uint64("nodes.seed", 0, "run only the schedule of TestNodes with this seed, with a log")
)

const (
	group = "cam" // the Configuration
	steps = 60    // of a schedule
	// gateNodes is the number of schedules in the gate, whose seeds are fixed.
	gateNodes = 20
	// maxRelease bounds the time from the end of a Pod until its slots are free (I7).
	maxRelease = 12 * time.Second
	// maxRewatch bounds the time until watches work again after an outage. It is
	// longer than a lost request may be late.
	maxRewatch = time.Minute
)

var instanceType = metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.InstanceKind.Kind}

// TestNodes runs the serving halves of several agents, each with a kubelet, on one API
// server, all in memory and in the time of a bubble. Pods come and go at random, of both
// levels; kubelets and agents restart; requests are delayed, lost, refused and repeated.
// The invariants of package slots are checked after each step, as the containers see
// them. A seed fixes the steps, but not the order of what happens at the same time. With
// AKRI_FULL=1, there are further schedules, with other seeds each time.
func TestNodes(t *testing.T) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// After an error, client-go sleeps relative to the last one: in the time of a bubble,
	// for decades.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() {
		utilruntime.ErrorHandlers = handlers
		klog.LogToStderr(true)
	})
	if *nodesSeed != 0 {
		schedule(t, *nodesSeed, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
		return
	}
	runNodes(t, 1, gateNodes)
	if fulltest.Enabled() {
		runNodes(t, rand.Uint64N(1<<32)+gateNodes+1, uint64(*nodesSchedules))
	}
}

// runNodes runs the schedules with count seeds, up to the first that fails.
func runNodes(t *testing.T, first, count uint64) {
	t.Logf("seeds %d to %d", first, first+count-1)
	for seed := first; seed < first+count; seed++ {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { schedule(t, seed, slog.New(slog.DiscardHandler)) }) {
			t.Fatalf("repeat with: go test -run TestNodes -nodes.seed=%d", seed)
		}
	}
}

// cluster is several nodes with the same devices.
type cluster struct {
	t         *testing.T
	random    *rand.Rand
	log       *slog.Logger
	api       *memoryAPI
	capacity  map[string]int // by Instance
	nodes     []*memoryNode
	admitting sync.WaitGroup
	late      sync.WaitGroup
	pods      int
}

// memoryNode is a node with a kubelet and the serving half of an agent.
type memoryNode struct {
	c       *cluster
	name    string
	kubelet *memoryKubelet
	link    *memoryLink
	store   *instances.Store
	server  *Server
	stop    func()
}

// schedule runs one random schedule.
func schedule(t *testing.T, seed uint64, log *slog.Logger) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, random: rand.New(rand.NewPCG(seed, 0)), log: log, api: newMemoryAPI(t.Errorf), capacity: map[string]int{}}
		c.createInstances()
		for i := range 2 + c.random.IntN(2) {
			c.addNode(fmt.Sprint("node-", i))
		}
		time.Sleep(time.Second)
		for range steps {
			c.step()
			time.Sleep(time.Duration(c.random.Int64N(int64(c.maxPause()))))
			synctest.Wait()
			c.check()
			if t.Failed() {
				break
			}
		}
		c.drain()
		for _, n := range c.nodes {
			n.stop()
		}
		c.late.Wait()
	})
}

// maxPause returns the bound of a random pause: much happens within milliseconds, or
// after some seconds.
func (c *cluster) maxPause() time.Duration {
	return []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second}[c.random.IntN(3)]
}

func (c *cluster) createInstances() {
	for i := range 1 + c.random.IntN(3) {
		name := fmt.Sprintf("%s-%06d", group, i)
		c.capacity[name] = 1 + c.random.IntN(3)
		c.api.create(&v0.Instance{
			TypeMeta:   instanceType,
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{}},
			Spec: v0.InstanceSpec{
				ConfigurationName: group, CDIName: v0.CDIName(group, name), Capacity: int32(c.capacity[name]), Shared: true,
			},
		})
	}
}

func (c *cluster) addNode(name string) {
	c.api.mu.Lock()
	for _, instance := range c.api.objects {
		joined := instance.DeepCopy()
		joined.Labels[v0.NodeLabel(name)] = ""
		joined.Spec.Nodes = append(joined.Spec.Nodes, name)
		c.api.put(joined)
	}
	c.api.mu.Unlock()
	n := &memoryNode{
		c: c, name: name, kubelet: newMemoryKubelet(name, c.t.Errorf),
		link: &memoryLink{api: c.api, running: &c.late, random: rand.New(rand.NewPCG(c.random.Uint64(), 0))},
	}
	c.nodes = append(c.nodes, n)
	n.start()
}

// start starts the serving half of an agent.
func (n *memoryNode) start() {
	t, log := n.c.t, n.c.log.With("agent", n.name)
	config := &rest.Config{Host: "http://api", Transport: n.link, QPS: -1}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	coreClient, err := core.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if n.store, err = instances.New(client, n.name, func(types.NamespacedName) {}, log); err != nil {
		t.Fatal(err)
	}
	store := n.store
	metrics, err := observer.NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	n.server, err = newServer(Options{
		NodeName: n.name, FieldManager: "akri-agent", Client: client, Instances: store, Log: log, Metrics: prometheus.NewRegistry(),
	}, observer.NewFrom(n.kubelet, n.kubelet, n.name, coreClient, log, metrics), n.kubelet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { store.Run(ctx) })
	running.Go(func() {
		if err := n.server.Run(ctx); err != nil {
			t.Errorf("%s: %v", n.name, err)
		}
	})
	running.Go(func() {
		for !store.HasSynced() && pause(ctx, 10*time.Millisecond) == nil {
		}
		n.publish(true)
	})
	n.stop = func() {
		cancel()
		running.Wait()
	}
}

// state returns the state of the machine.
func (n *memoryNode) state() slots.State {
	state, err := ask(context.Background(), n.server, n.server.machine.State)
	if err != nil {
		n.c.t.Errorf("%s: %v", n.name, err)
	}
	return state
}

// publish publishes the devices, as the reconciler does once the Instances are synced.
func (n *memoryNode) publish(online bool) {
	if !n.store.HasSynced() {
		return
	}
	var list []device.Device
	for name, capacity := range n.c.capacity {
		list = append(list, device.Device{
			Instance: types.NamespacedName{Namespace: "default", Name: name}, Configuration: group, ID: name, Shared: true,
			Capacity: int32(capacity), Online: online, Files: []device.File{{HostPath: name}},
		})
	}
	n.server.Publish(types.NamespacedName{Namespace: "default", Name: group}, list)
}

// step does something at random.
func (c *cluster) step() {
	n := c.nodes[c.random.IntN(len(c.nodes))]
	switch choice := c.random.IntN(24); {
	case choice < 8:
		c.admit(n)
	case choice < 16:
		if live := n.kubelet.live(); len(live) > 0 {
			n.kubelet.end(live[c.random.IntN(len(live))], c.random.IntN(2) == 0)
		}
	case choice < 17:
		n.kubelet.restart(time.Duration(c.random.Int64N(int64(2 * time.Second))))
	case choice < 18:
		n.stop()
		n.start()
	case choice < 19:
		n.publish(c.random.IntN(3) > 0)
	case choice < 20:
		n.link.set(true, false)
	default:
		n.link.set(false, c.random.IntN(4) > 0)
	}
}

// admit admits a Pod in the background. Several nodes may race for a slot.
func (c *cluster) admit(n *memoryNode) {
	c.pods++
	name, count := group, 1+c.random.IntN(2)
	if names := slices.Sorted(maps.Keys(c.capacity)); c.random.IntN(2) == 0 {
		name = names[c.random.IntN(len(names))]
		count = min(count, c.capacity[name])
	}
	pod := newMemoryPod(fmt.Sprint("pod-", c.pods), v0.ResourceName(name), count, c.random.IntN(3) == 0)
	c.admitting.Go(func() {
		n.kubelet.admit(pod, v0.ResourceName(name), count)
	})
}

// check verifies the invariants.
func (c *cluster) check() {
	users := map[string]int{}     // by Instance
	holder := map[string]string{} // by slot, of the Instances' resources
	for _, n := range c.nodes {
		for _, container := range n.kubelet.holders() {
			c.checkRecord(n, container)
			if container.resource == v0.ResourceName(group) {
				for _, instance := range container.devices {
					users[instance]++
				}
				continue
			}
			users[container.devices[0]] += len(container.ids)
			for _, id := range container.ids {
				if other := holder[id]; other != "" {
					c.t.Errorf("I1 %s: containers of %s and %s have the slot", id, other, n.name)
				}
				holder[id] = n.name
			}
		}
		for _, violation := range slots.Check(n.state()) {
			c.t.Errorf("%s: %v", n.name, violation)
		}
	}
	for instance, count := range users {
		if count > c.capacity[instance] {
			c.t.Errorf("I3 %s: containers have %d slots, the capacity is %d", instance, count, c.capacity[instance])
		}
	}
}

// checkRecord verifies that the record names the user of each slot.
func (c *cluster) checkRecord(n *memoryNode, container memoryContainer) {
	if container.resource != v0.ResourceName(group) {
		for _, id := range container.ids {
			if owner := c.api.usage(container.devices[0])[id]; string(owner) != n.name {
				c.t.Errorf("I2 %s: a container of %s has the slot, but the record says %q", id, n.name, owner)
			}
		}
		return
	}
	for _, instance := range container.devices {
		usage := c.api.usage(instance)
		if !slices.ContainsFunc(slices.Collect(maps.Values(usage)), func(owner v0.SlotOwner) bool {
			return slices.Contains(container.ids, strings.TrimSuffix(strings.TrimPrefix(string(owner), "C:"), ":"+n.name))
		}) {
			c.t.Errorf("I2 %s: a container of %s has a slot through the ids %v, but the record says %v", instance, n.name, container.ids, usage)
		}
	}
}

// drain ends all Pods without further faults. All slots must then become free, and be
// available to all nodes.
func (c *cluster) drain() {
	for _, n := range c.nodes {
		n.link.set(false, false)
		n.publish(true)
	}
	c.admitting.Wait()
	time.Sleep(maxRewatch)
	c.check()
	for _, n := range c.nodes {
		for _, pod := range n.kubelet.live() {
			n.kubelet.end(pod, true)
		}
	}
	time.Sleep(maxRelease)
	for instance := range c.capacity {
		for slot, owner := range c.api.usage(instance) {
			if owner != "" {
				c.t.Errorf("I7 %s: still owned by %q %v after all pods ended", slot, owner, maxRelease)
			}
		}
	}
	for _, n := range c.nodes {
		for _, name := range append(slices.Collect(maps.Keys(c.capacity)), group) {
			pod := newMemoryPod(n.name+"-last-"+name, v0.ResourceName(name), 1, false)
			if !n.kubelet.admit(pod, v0.ResourceName(name), 1) {
				c.t.Errorf("%s: a pod is not admitted although all slots of %s are free: %v; %+v", n.name, name, n.kubelet.lists(), n.state())
			}
			n.kubelet.end(pod, true)
			time.Sleep(maxRelease)
		}
	}
	c.check()
}
