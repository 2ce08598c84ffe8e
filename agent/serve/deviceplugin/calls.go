package deviceplugin

import (
	"context"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/slots"
)

// allocateDeadline bounds a call of the kubelet, which sets no limit itself. A slow
// response blocks every Pod of the node.
const allocateDeadline = 2 * time.Second

// pendingCall is a call of the kubelet that has not been answered.
type pendingCall struct {
	resource slots.Resource
	ids      []int
	answers  chan<- callAnswer
}

// callAnswer ends a request.
type callAnswer struct {
	ids     []int           // of a preference
	devices []device.Device // of an allocation
	err     error
}

// allocate implements [allocator].
func (s *Server) allocate(ctx context.Context, resource slots.Resource, ids []int) (*plugin.ContainerAllocateResponse, error) {
	s.allocations.begin()
	defer s.allocations.end()
	a := s.call(ctx, resource, ids, func(call slots.Call) slots.Event {
		return slots.AllocateRequested{Call: call, Resource: resource, IDs: ids}
	})
	if a.err != nil {
		return nil, a.err
	}
	response, omissions := respond(a.devices)
	for _, o := range omissions {
		s.warnOfInstance(o.device.Instance, "", o.reason, o.what)
	}
	return response, nil
}

// prefer implements [allocator].
func (s *Server) prefer(ctx context.Context, resource slots.Resource, available, must []int, size int) ([]int, error) {
	a := s.call(ctx, resource, must, func(call slots.Call) slots.Event {
		return slots.PreferenceAsked{Call: call, Resource: resource, Available: available, Must: must, Size: size}
	})
	return a.ids, a.err
}

// unlisted implements [allocator].
func (s *Server) unlisted(resource slots.Resource, err error, answer bool) {
	if answer {
		s.metrics.allocation(err)
	}
	s.queue.post(func() { s.warnOfRefusal(resource, nil, err) })
}

// call passes a call of the kubelet to the loop and waits for the answer.
func (s *Server) call(ctx context.Context, resource slots.Resource, ids []int, event func(slots.Call) slots.Event) callAnswer {
	ctx, cancel := context.WithTimeout(ctx, allocateDeadline)
	defer cancel()
	answers, id := make(chan callAnswer, 1), slots.Call(s.calls.Add(1))
	s.queue.post(func() {
		s.requests[id] = pendingCall{resource, ids, answers}
		s.step(event(id))
	})
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		s.queue.post(func() { s.step(slots.CallExpired{Call: id}) })
	case <-s.stopped:
	}
	select {
	case a := <-answers: // a late answer, or the reason for the expiry
		return a
	case <-s.stopped:
		return callAnswer{err: errStopping}
	}
}
