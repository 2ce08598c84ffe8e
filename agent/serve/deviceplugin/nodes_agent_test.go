package deviceplugin

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/observer"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/deadline"
)

// memoryNode is a node with a kubelet and, most of the time, an agent.
type memoryNode struct {
	c       *cluster
	name    string
	kubelet *memoryKubelet
	link    *memoryLink
	agent   *memoryAgent  // nil while there is none
	startAt time.Time     // of the next agent, while there is none
	touched chan struct{} // capacity 1: publish soon
	// troubledAt is when the node was last troubled.
	troubledAt time.Time
	sawAt      map[string]time.Time // when sees last changed, by Instance

	mu sync.Mutex
	// sees are the devices that the node's discovery handler reports, by the names of
	// their Instances.
	sees map[string]streams.Known
	// configuration is the Configuration as the node's agent knows it.
	configuration *v0.Configuration
}

// memoryAgent is one life of an agent: its serving half, and the publisher, with a loop in
// place of the reconciler and a list in place of the discovery handlers. It is [plugins].
type memoryAgent struct {
	*memoryKubelet
	n         *memoryNode
	store     *instances.Store
	publisher *publish.Publisher
	server    *Server
	startedAt time.Time
	settledAt time.Time       // when the handlers have reported
	alive     context.Context // until it crashes
	kill      context.CancelFunc
	quit      context.CancelFunc
	running   sync.WaitGroup
}

// start starts an agent, which knows what the API server and the kubelet say.
func (n *memoryNode) start() {
	t, log := n.c.t, n.c.log.With("agent", n.name)
	n.learn(n.c.configuration)
	a := &memoryAgent{
		memoryKubelet: n.kubelet, n: n, startedAt: time.Now(), settledAt: time.Now().Add(n.c.upTo(maxSettle)),
	}
	a.alive, a.kill = context.WithCancel(context.Background())
	config := &rest.Config{Host: "http://api", Transport: connection{n.link, a.alive}, QPS: -1}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	coreClient, err := core.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if a.store, err = instances.New(client, n.name, func(types.NamespacedName) { n.touch() }, log); err != nil {
		t.Fatal(err)
	}
	a.publisher = publish.New(client, a.store, n.name, v0.FieldManagerAgent, log)
	a.store.Unless(a.publisher.Matches)
	metrics, err := observer.NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	a.server, err = newServer(Options{
		NodeName: n.name, FieldManager: v0.FieldManagerAgent, Client: client, Instances: a.store, Log: log,
		Metrics: prometheus.NewRegistry(),
	}, observer.NewFrom(n.kubelet, n.kubelet, n.name, coreClient, log, metrics), a)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, a.quit = context.WithCancel(context.Background())
	a.running.Go(func() { a.store.Run(ctx) })
	a.running.Go(func() {
		if err := a.server.Run(ctx); err != nil {
			t.Errorf("%s: %v", n.name, err)
		}
	})
	a.running.Go(func() {
		for !a.store.HasSynced() && pause(ctx, 10*time.Millisecond) == nil {
		}
		a.reconcile(ctx)
	})
	n.agent = a
}

// end stops the agent as a signal does, and waits until it has ended.
func (n *memoryNode) end() {
	if n.agent == nil {
		return
	}
	n.agent.quit()
	n.agent.running.Wait()
	n.agent.kill()
	n.agent = nil
}

// crash ends the agent at once. Nothing that it still does reaches the kubelet or the API
// server, except requests that are under way.
func (n *memoryNode) crash() {
	if n.agent == nil {
		return
	}
	n.agent.kill()
	n.agent.quit()
	n.c.late.Go(n.agent.running.Wait)
	n.agent = nil
}

// startDue starts an agent if it is time.
func (n *memoryNode) startDue() {
	if n.agent == nil && !time.Now().Before(n.startAt) {
		n.start()
	}
}

// capacity returns the capacity with which an Instance is offered, or 0.
func (a *memoryAgent) capacity(instance string) int {
	capacity, err := ask(context.Background(), a.server, func() int {
		if d, found := a.server.devices.get(a.server.devices.nameOf(instance)); found {
			return int(d.Capacity)
		}
		return 0
	})
	if err != nil {
		a.n.c.t.Errorf("%s: %v", a.n.name, err)
	}
	return capacity
}

// touch lets the agent publish soon.
func (n *memoryNode) touch() {
	select {
	case n.touched <- struct{}{}:
	default:
	}
}

// reconcile publishes the devices that the node sees, after each event and as often as the
// publisher wants, until ctx is done. It is the part of agent/reconcile.go that concerns
// the Instances of one Configuration.
func (a *memoryAgent) reconcile(ctx context.Context) {
	offered := []device.Device(nil)
	failures := 0
	a.n.touch()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.n.touched:
		}
		configuration, snapshot := a.snapshot()
		result, err := a.publisher.Publish(ctx, configuration, snapshot)
		if !reflect.DeepEqual(result.Devices, offered) {
			offered = result.Devices
			a.server.Publish(types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}, offered)
		}
		next := deadline.Earliest(snapshot.Next, result.Next)
		if err != nil {
			next = time.Now().Add(backoff.Delay(minInterval, maxRetry, failures))
			failures++
		} else {
			failures = 0
		}
		if !next.IsZero() {
			timer := time.AfterFunc(time.Until(next), a.n.touch)
			context.AfterFunc(ctx, func() { timer.Stop() })
		}
	}
}

// snapshot returns what the handlers have reported.
func (a *memoryAgent) snapshot() (*v0.Configuration, streams.Snapshot) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	snapshot := streams.Snapshot{Settled: !time.Now().Before(a.settledAt)}
	if !snapshot.Settled {
		snapshot.Next = a.settledAt
		return a.n.configuration, snapshot
	}
	for _, known := range a.n.sees {
		snapshot.Devices = append(snapshot.Devices, known)
	}
	slices.SortFunc(snapshot.Devices, func(a, b streams.Known) int { return cmp.Compare(a.ID, b.ID) })
	return a.n.configuration, snapshot
}

// see changes what the node's handler reports about a device.
func (n *memoryNode) see(d memoryDevice, present, online bool) {
	n.sawAt[d.name] = time.Now()
	n.mu.Lock()
	delete(n.sees, d.name)
	if present {
		n.sees[d.name] = streams.Known{
			Device: streams.Device{Key: d.Key, Files: []device.File{{HostPath: d.name, ContainerPath: d.name}}}, Online: online,
		}
	}
	n.mu.Unlock()
	n.touch()
}

// seesNow reports whether the node sees the device of an Instance.
func (n *memoryNode) seesNow(instance string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, found := n.sees[instance]
	return found
}

// seesOnline reports whether the node sees the device of an Instance, and it is online.
func (n *memoryNode) seesOnline(instance string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sees[instance].Online
}

// learn lets the agent know the latest Configuration.
func (n *memoryNode) learn(latest *v0.Configuration) {
	n.mu.Lock()
	if n.configuration == nil || latest.Generation > n.configuration.Generation {
		n.configuration = latest
	}
	n.mu.Unlock()
}

// Serve implements [plugins].
func (a *memoryAgent) Serve(ctx context.Context, resource string, server plugin.DevicePluginServer) {
	a.serve(ctx, a.alive, resource, mortal{server, a})
}

// mortal is a device plugin that breaks the connection when its agent crashes.
type mortal struct {
	plugin.DevicePluginServer
	agent *memoryAgent
}

func (m mortal) Allocate(ctx context.Context, r *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	return whileAlive(m.agent, func() (*plugin.AllocateResponse, error) { return m.DevicePluginServer.Allocate(ctx, r) })
}

func (m mortal) GetPreferredAllocation(
	ctx context.Context, r *plugin.PreferredAllocationRequest,
) (*plugin.PreferredAllocationResponse, error) {
	return whileAlive(m.agent, func() (*plugin.PreferredAllocationResponse, error) {
		return m.DevicePluginServer.GetPreferredAllocation(ctx, r)
	})
}

// whileAlive returns the answer of a call, or an error as soon as the agent crashes.
func whileAlive[T any](a *memoryAgent, call func() (T, error)) (T, error) {
	var answer T
	var err error
	done := make(chan struct{})
	a.n.c.late.Go(func() {
		defer close(done)
		answer, err = call()
	})
	select {
	case <-done:
		return answer, err
	case <-a.alive.Done():
		var none T
		return none, status.Error(codes.Unavailable, "the connection is closed")
	}
}
