package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/serve/kubelet"
	v0 "akri.sh/akri/api/v0"
)

// maxStall bounds how long the kubelet stalls around a call: less than [slots.Quiet].
const maxStall = 29 * time.Second

// maxCall bounds a call of the kubelet: [allocateDeadline], and the time to announce a
// refusal.
const maxCall = allocateDeadline + flushTimeout + refusalDelay + 10*time.Millisecond

// memoryKubelet is the kubelet of one node in memory, with the rules of
// internal/kubelettest. It is [plugins] and an observer.Lister.
type memoryKubelet struct {
	node      string
	violation func(format string, arguments ...any)
	admitting chan struct{} // capacity 1: one Pod at a time

	mu        sync.Mutex
	life      context.Context // ends when the kubelet stops
	stop      context.CancelFunc
	started   chan struct{} // closed when it starts again
	startedAt time.Time     // zero before the first restart
	readyAt   time.Time
	resources map[string]*memoryResource
	pods      []*memoryPod

	api *memoryAPI // has the node's Pods
}

type memoryResource struct {
	server plugin.DevicePluginServer // nil: disconnected
	health map[string]string
}

func newMemoryKubelet(node string, api *memoryAPI) *memoryKubelet {
	k := &memoryKubelet{
		node: node, violation: api.violation, admitting: make(chan struct{}, 1), started: make(chan struct{}),
		resources: map[string]*memoryResource{}, api: api,
	}
	k.life, k.stop = context.WithCancel(context.Background())
	return k
}

// restart stops the kubelet and starts it again. Containers keep running. For some
// time, it does not know its Pods.
func (k *memoryKubelet) restart(warmup time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stop()
	k.life, k.stop = context.WithCancel(context.Background())
	k.startedAt, k.readyAt = time.Now(), time.Now().Add(warmup)
	close(k.started)
	k.started = make(chan struct{})
}

// startedSince reports whether the kubelet has started again since a time.
func (k *memoryKubelet) startedSince(at time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.startedAt.Before(at)
}

// Clean implements [plugins].
func (k *memoryKubelet) Clean() error { return nil }

// Run implements [plugins].
func (k *memoryKubelet) Run(ctx context.Context, started func()) error {
	for {
		k.mu.Lock()
		again := k.started
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			started()
		}
	}
}

// Serve implements [plugins].
func (k *memoryKubelet) Serve(ctx context.Context, name string, server plugin.DevicePluginServer) {
	k.serve(ctx, context.Background(), name, server)
}

// serve serves a resource until ctx is done or the agent is no longer alive: the kubelet
// connects after some milliseconds, and again after each of its starts.
func (k *memoryKubelet) serve(ctx, alive context.Context, name string, server plugin.DevicePluginServer) {
	for pause(ctx, 5*time.Millisecond) == nil && alive.Err() == nil {
		k.mu.Lock()
		life := k.life
		r := k.resources[name]
		if r == nil {
			r = &memoryResource{health: map[string]string{}}
			k.resources[name] = r
		}
		r.server = server
		k.mu.Unlock()
		stream, cancel := context.WithCancel(ctx)
		stops := []func() bool{context.AfterFunc(life, cancel), context.AfterFunc(alive, cancel)}
		if err := server.ListAndWatch(&plugin.Empty{}, &memoryStream{ctx: stream, k: k, r: r}); err != nil {
			k.violation("%s: ListAndWatch of %s: %v", k.node, name, err)
		}
		for _, stop := range stops {
			stop()
		}
		cancel()
		k.mu.Lock()
		if r.server == server {
			r.server = nil
		}
		k.mu.Unlock()
	}
}

// memoryStream is a stream of lists.
type memoryStream struct {
	grpc.ServerStream
	ctx context.Context
	k   *memoryKubelet
	r   *memoryResource
}

func (s *memoryStream) Context() context.Context { return s.ctx }

func (s *memoryStream) Send(list *plugin.ListAndWatchResponse) error {
	if s.ctx.Err() != nil {
		return nil // the kubelet is gone, which the plugin notices later
	}
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.r.health = map[string]string{}
	for _, d := range list.GetDevices() {
		s.r.health[d.GetID()] = d.GetHealth()
	}
	return nil
}

// List implements observer.Lister.
func (k *memoryKubelet) List(context.Context) (kubelet.Listing, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var listing kubelet.Listing
	for _, pod := range k.pods {
		if pod.ended || pod.forced || time.Now().Before(k.readyAt) {
			continue
		}
		holding := kubelet.Holding{Namespace: pod.object.Namespace, Name: pod.object.Name, IDs: map[string][]string{}}
		for _, c := range pod.containers {
			if !c.init {
				holding.IDs[c.resource] = append(holding.IDs[c.resource], c.ids...)
			}
		}
		listing = append(listing, holding)
	}
	return listing, nil
}

// Close implements observer.Lister.
func (k *memoryKubelet) Close() error { return nil }

// admit admits a Pod as the kubelet's sync loop does. It reports whether the Pod runs.
func (k *memoryKubelet) admit(pod *memoryPod, resourceName string, count int) bool {
	k.create(pod)
	k.admitting <- struct{}{}
	defer func() { <-k.admitting }()
	k.mu.Lock()
	k.pods = append(k.pods, pod)
	k.mu.Unlock()
	var reusable []string
	for _, c := range slices.Concat(pod.object.Spec.InitContainers, pod.object.Spec.Containers) {
		began := time.Now()
		ids, devices, err := k.allocate(pod, resourceName, count, reusable)
		k.mu.Lock()
		if err != nil {
			pod.ended = true
			k.setPhase(pod, corev1.PodFailed, corev1.ContainerState{})
			k.mu.Unlock()
			return false
		}
		reusable = ids
		init := len(pod.containers) < len(pod.object.Spec.InitContainers)
		pod.containers = append(pod.containers, &memoryContainer{
			name: c.Name, resource: resourceName, ids: ids, devices: devices, init: init, began: began, excused: map[string]bool{},
		})
		k.mu.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	pod.running = true
	k.setPhase(pod, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	return true
}

var errAdmission = errors.New("UnexpectedAdmissionError")

// allocate chooses IDs, those of an init container first, and calls Allocate. It fails if
// the kubelet restarts meanwhile.
func (k *memoryKubelet) allocate(pod *memoryPod, name string, count int, reusable []string) (ids, devices []string, err error) {
	k.mu.Lock()
	life, r := k.life, k.resources[name]
	var server plugin.DevicePluginServer
	var available []string
	if r != nil {
		server, available = r.server, k.available(name, r)
	}
	k.mu.Unlock()
	ids = slices.Clone(reusable)
	need := count - len(ids)
	if server == nil || need > len(available) {
		return nil, nil, errAdmission
	}
	ctx := context.Background()
	if need > 0 {
		slices.Sort(available)
		available = k.prefer(ctx, server, available, ids, count)
		ids = append(ids, available[:need]...)
	}
	if pause(life, pod.stallBefore) != nil {
		return nil, nil, errAdmission
	}
	began := time.Now()
	answer, err := server.Allocate(ctx, &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: ids}}})
	if took := time.Since(began); took > maxCall {
		k.violation("I8 %s: Allocate of %s %v took %v", k.node, name, ids, took)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errAdmission, err)
	}
	if len(answer.GetContainerResponses()) != 1 {
		k.violation("I8 %s: Allocate of %s %v has %d responses", k.node, name, ids, len(answer.GetContainerResponses()))
		return nil, nil, errAdmission
	}
	if pause(life, pod.stallAfter) != nil {
		return nil, nil, errAdmission
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		// An agent that has started meanwhile cannot know of the call.
		if _, listed := r.health[id]; !listed && r.server == server {
			k.violation("I6 %s: id %s of %s left the list during Allocate: the kubelet crashes", k.node, id, name)
		}
	}
	for _, file := range answer.GetContainerResponses()[0].GetDevices() {
		devices = append(devices, file.GetHostPath())
	}
	want := 1
	if name == v0.ResourceName(group) {
		want = len(ids)
	}
	if len(devices) != want { // the response names a device once
		k.violation("I5 %s: a container with the ids %v of %s got the devices %v", k.node, ids, name, devices)
	}
	return ids, devices, nil
}

// available returns the healthy IDs that no Pod has. The caller holds mu.
func (k *memoryKubelet) available(name string, r *memoryResource) []string {
	used := map[string]bool{}
	for _, pod := range k.pods {
		for _, c := range pod.containers {
			for _, id := range c.ids {
				used[id] = used[id] || !pod.ended && !pod.forced && c.resource == name
			}
		}
	}
	var available []string
	for id, health := range r.health {
		if health == plugin.Healthy && !used[id] {
			available = append(available, id)
		}
	}
	return available
}

// prefer moves the IDs that the plugin prefers to the front.
func (k *memoryKubelet) prefer(ctx context.Context, server plugin.DevicePluginServer, available, must []string, count int) []string {
	answer, err := server.GetPreferredAllocation(ctx, &plugin.PreferredAllocationRequest{
		ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: slices.Concat(must, available), MustIncludeDeviceIDs: must, AllocationSize: int32(count),
		}},
	})
	if err != nil {
		return available
	}
	var front []string
	for _, id := range answer.GetContainerResponses()[0].GetDeviceIDs() {
		if slices.Contains(available, id) {
			front = append(front, id)
		}
	}
	return append(front, slices.DeleteFunc(available, func(id string) bool { return slices.Contains(front, id) })...)
}

// lists returns the health of all IDs, for a failure.
func (k *memoryKubelet) lists() map[string]map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]map[string]string{}
	for name, r := range k.resources {
		all[name] = maps.Clone(r.health)
	}
	return all
}
