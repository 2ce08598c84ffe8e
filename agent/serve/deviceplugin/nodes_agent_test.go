package deviceplugin

import (
	"context"
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
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
)

// memoryNode is a node with a kubelet and, most of the time, an agent.
type memoryNode struct {
	c       *cluster
	name    string
	kubelet *memoryKubelet
	link    *memoryLink
	agent   *memoryAgent // nil while there is none
	startAt time.Time    // of the next agent, while there is none
}

// memoryAgent is one life of the serving half of an agent. It is [plugins].
type memoryAgent struct {
	*memoryKubelet
	n       *memoryNode
	store   *instances.Store
	server  *Server
	alive   context.Context // until it crashes
	kill    context.CancelFunc
	quit    context.CancelFunc
	running sync.WaitGroup
}

// start starts an agent, which knows what the API server and the kubelet say.
func (n *memoryNode) start() {
	t, log := n.c.t, n.c.log.With("agent", n.name)
	a := &memoryAgent{memoryKubelet: n.kubelet, n: n}
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
	if a.store, err = instances.New(client, n.name, func(types.NamespacedName) {}, log); err != nil {
		t.Fatal(err)
	}
	metrics, err := observer.NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	a.server, err = newServer(Options{
		NodeName: n.name, FieldManager: "akri-agent", Client: client, Instances: a.store, Log: log, Metrics: prometheus.NewRegistry(),
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
		a.publish(true)
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

// state returns the state of the machine.
func (a *memoryAgent) state() slots.State {
	state, err := ask(context.Background(), a.server, a.server.machine.State)
	if err != nil {
		a.n.c.t.Errorf("%s: %v", a.n.name, err)
	}
	return state
}

// publish publishes the devices, as the reconciler does once the Instances are synced.
func (a *memoryAgent) publish(online bool) {
	if !a.store.HasSynced() {
		return
	}
	var list []device.Device
	for name, capacity := range a.n.c.capacity {
		list = append(list, device.Device{
			Instance: types.NamespacedName{Namespace: "default", Name: name}, Configuration: group, ID: name, Shared: true,
			Capacity: int32(capacity), Online: online, Files: []device.File{{HostPath: name}},
		})
	}
	a.server.Publish(types.NamespacedName{Namespace: "default", Name: group}, list)
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
