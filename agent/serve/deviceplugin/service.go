package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	// coalesce is how long changes of a list are debounced before it is sent.
	coalesce = 50 * time.Millisecond
	// listBurst is how many lists may exceed listRate.
	listBurst = 10
	// flushTimeout bounds how long a refusal waits for a list to be sent.
	flushTimeout = 200 * time.Millisecond
	// refusalDelay is the time between sending a list and refusing an Allocate.
	// The two travel on different streams, so neither gRPC nor the kubelet
	// preserves their order.
	refusalDelay = 20 * time.Millisecond
	// maxShownID bounds the bytes that a message shows of an ID that was never listed.
	maxShownID = 100
)

// listRate bounds the lists per second of a device that flaps: the kubelet writes its
// checkpoint to disk for each. A list that a call waits for is sent at once. It is a
// variable for tests.
var listRate rate.Limit = 1

// allocator decides the calls of the kubelet.
type allocator interface {
	// allocate gives IDs of a resource to a container. It returns within its own
	// deadline.
	allocate(ctx context.Context, resource slots.Resource, ids []int) (*plugin.ContainerAllocateResponse, error)
	// prefer chooses among the IDs that are available to the kubelet.
	prefer(ctx context.Context, resource slots.Resource, available, must []int, size int) ([]int, error)
	// unlisted reports that a call names an ID that is not in the last list, and whether
	// that is the answer to an Allocate.
	unlisted(resource slots.Resource, err error, answer bool)
}

// service implements the device plugin of one resource. It outlives the sockets on
// which it is served. The kubelet may have several streams open while it changes
// from one socket to the next.
type service struct {
	plugin.UnimplementedDevicePluginServer
	resource  slots.Resource
	allocator allocator
	lists     *rate.Limiter

	mu      sync.Mutex
	list    []slots.Health
	version int             // of list
	urgent  int             // version of list that a call waits for
	sent    map[string]bool // never changed, only replaced
	sentV   int             // version of the list in sent
	ended   bool            // the current list is the last
	streams int             // open streams
	changed chan struct{}   // closed when one of the versions changes
}

func newService(resource slots.Resource, a allocator) *service {
	return &service{
		resource: resource, allocator: a, lists: rate.NewLimiter(listRate, listBurst), sent: map[string]bool{},
		changed: make(chan struct{}),
	}
}

// update changes the service and wakes those that wait.
func (s *service) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait returns when a condition holds, which depends on the versions only, or when ctx
// ends. It reports whether the condition holds.
func (s *service) wait(ctx context.Context, condition func() bool) bool {
	for {
		s.mu.Lock()
		holds, changed := condition(), s.changed
		s.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// setList replaces the list. The stream sends it after coalesce.
func (s *service) setList(list []slots.Health) {
	s.update(func() {
		s.list = list
		s.version++
	})
}

// sendUnhealthy sends a last list, in which every ID is unhealthy, and ends the
// streams.
func (s *service) sendUnhealthy() {
	connected := false
	// At once: a stream must not take the list that it has just sent for the last one.
	s.update(func() {
		list := make([]slots.Health, 0, len(s.list))
		for _, h := range s.list {
			list = append(list, slots.Health{ID: h.ID})
		}
		s.list, s.ended = list, true
		s.version++
		s.urgent = s.version
		connected = s.sentV > 0
	})
	if connected {
		s.flush(context.Background())
	}
}

// flush sends the list without waiting for further changes. It returns when the list
// has been sent, or after flushTimeout.
func (s *service) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	var want int
	s.update(func() {
		want = s.version
		s.urgent = want
	})
	s.wait(ctx, func() bool { return s.sentV >= want })
}

// announceRefusal returns when the list that shows the refused IDs has been
// sent and the kubelet has had time to read it. The wait is bounded.
func (s *service) announceRefusal(ctx context.Context) {
	s.flush(ctx)
	select {
	case <-time.After(refusalDelay):
	case <-ctx.Done():
	}
}

func (s *service) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// ListAndWatch sends the list and its changes.
func (s *service) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	s.countStream(1)
	defer s.countStream(-1)
	sentVersion := -1
	for {
		if !s.wait(stream.Context(), func() bool { return s.version != sentVersion }) {
			return nil
		}
		// Also after a change during Send: a device that flaps must not evade the limit.
		if sentVersion >= 0 {
			s.gather(stream.Context())
		}
		version, response := s.take()
		if err := stream.Send(response); err != nil {
			return err
		}
		if last := s.markSent(version); last {
			return nil
		}
		sentVersion = version
	}
}

func (s *service) countStream(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams += n
}

// connected reports whether the kubelet receives the list.
func (s *service) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams > 0
}

// gather waits for further changes of the list, unless a call waits for it.
func (s *service) gather(ctx context.Context) {
	urgent := func() bool { return s.urgent == s.version || s.urgent > s.sentV }
	s.mu.Lock()
	now := urgent()
	s.mu.Unlock()
	if now {
		return
	}
	turn := s.lists.Reserve()
	quiet, cancel := context.WithTimeout(ctx, max(coalesce, turn.Delay()))
	defer cancel()
	if s.wait(quiet, urgent) || ctx.Err() != nil {
		turn.Cancel() // unless it has passed: the next list can have it
	}
}

// take returns the list to send. From now on, calls may name only its ids: a removed
// id is refused at once, and a new id cannot be named before the list has arrived.
func (s *service) take() (int, *plugin.ListAndWatchResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &plugin.ListAndWatchResponse{}
	sent := map[string]bool{}
	for _, h := range s.list {
		id, health := s.resource.ID(h.ID), plugin.Unhealthy
		if h.Healthy {
			health = plugin.Healthy
		}
		sent[id] = true
		response.Devices = append(response.Devices, &plugin.Device{ID: id, Health: health})
	}
	s.sent = sent
	return s.version, response
}

// markSent records that a list was sent, and reports whether it was the last.
func (s *service) markSent(version int) (last bool) {
	s.update(func() {
		s.sentV = max(s.sentV, version)
		last = s.ended && version == s.version
	})
	return last
}

// listed parses ids, and reports the refusal of one that is not in the last list: the kubelet
// looks it up there and crashes if it is missing.
func (s *service) listed(ids []string, answer bool) ([]int, error) {
	s.mu.Lock()
	sent := s.sent
	s.mu.Unlock()
	var numbers []int
	for _, id := range ids {
		number, ok := s.resource.Number(id)
		if !ok || !sent[id] {
			err := fmt.Errorf("the kubelet named the ID %q, which is not in the last list: %w", text.Truncate(id, maxShownID), slots.ErrNoSlot)
			s.allocator.unlisted(s.resource, err, answer)
			return nil, status.Error(code(err), err.Error())
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// Allocate gives IDs to containers. Each container request gets one response.
func (s *service) Allocate(ctx context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	answer := &plugin.AllocateResponse{}
	for _, c := range request.GetContainerRequests() {
		ids, err := s.listed(c.GetDevicesIds(), true)
		if err != nil {
			return nil, err
		}
		response, err := s.allocator.allocate(ctx, s.resource, ids)
		if err != nil {
			s.announceRefusal(ctx)
			return nil, status.Error(code(err), fmt.Sprintf("%s: %v: %v", v0.ResourceName(s.resource.Name), c.GetDevicesIds(), err))
		}
		if _, err := s.listed(c.GetDevicesIds(), false); err != nil { // already counted
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, response)
	}
	return answer, nil
}

func code(err error) codes.Code {
	switch {
	case errors.Is(err, slots.ErrTaken), errors.Is(err, slots.ErrFull), errors.Is(err, slots.ErrTooFew):
		return codes.ResourceExhausted
	case errors.Is(err, slots.ErrDeadline), errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, slots.ErrNoSlot), errors.Is(err, slots.ErrGone):
		return codes.NotFound
	}
	return codes.Unavailable
}

// GetPreferredAllocation chooses IDs. The kubelet calls it for each allocation
// and follows the answer.
func (s *service) GetPreferredAllocation(
	ctx context.Context, request *plugin.PreferredAllocationRequest,
) (*plugin.PreferredAllocationResponse, error) {
	answer := &plugin.PreferredAllocationResponse{}
	for _, c := range request.GetContainerRequests() {
		available, err := s.listed(c.GetAvailableDeviceIDs(), false)
		if err != nil {
			return nil, err
		}
		must, err := s.listed(c.GetMustIncludeDeviceIDs(), false)
		if err != nil {
			return nil, err
		}
		chosen, err := s.allocator.prefer(ctx, s.resource, available, must, int(c.GetAllocationSize()))
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		response := &plugin.ContainerPreferredAllocationResponse{}
		for _, number := range chosen {
			response.DeviceIDs = append(response.DeviceIDs, s.resource.ID(number))
		}
		answer.ContainerResponses = append(answer.ContainerResponses, response)
	}
	return answer, nil
}

// PreStartContainer does nothing. The kubelet calls it only if the options request
// it.
func (s *service) PreStartContainer(context.Context, *plugin.PreStartContainerRequest) (*plugin.PreStartContainerResponse, error) {
	return &plugin.PreStartContainerResponse{}, nil
}
