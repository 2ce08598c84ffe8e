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

// pendingCall is an Allocate call that has not been answered.
type pendingCall struct {
	resource slots.Resource
	ids      []int
	answers  chan<- callAnswer
}

// callAnswer ends an Allocate call.
type callAnswer struct {
	devices []device.Device
	err     error
}

// allocate implements [allocator].
func (s *Server) allocate(ctx context.Context, resource slots.Resource, ids []int) (*plugin.ContainerAllocateResponse, error) {
	s.allocations.begin()
	defer s.allocations.end()
	a := s.call(ctx, resource, ids)
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
	ctx, cancel := context.WithTimeout(ctx, allocateDeadline)
	defer cancel()
	return ask(ctx, s, func() []int {
		s.do(s.machine.Step(slots.Ticked{Now: s.now()}))
		return s.machine.Prefer(slots.Preference{Resource: resource, Available: available, Must: must, Size: size})
	})
}

// unlisted implements [allocator].
func (s *Server) unlisted(resource slots.Resource, err error, answer bool) {
	if answer {
		s.metrics.allocation(err)
	}
	s.queue.post(func() { s.warnOfRefusal(resource, nil, err) })
}

// call passes an Allocate call to the loop and waits for the answer.
func (s *Server) call(ctx context.Context, resource slots.Resource, ids []int) callAnswer {
	ctx, cancel := context.WithTimeout(ctx, allocateDeadline)
	defer cancel()
	answers, id := make(chan callAnswer, 1), slots.Call(s.calls.Add(1))
	s.queue.post(func() {
		s.requests[id] = pendingCall{resource, ids, answers}
		s.step(slots.AllocateRequested{Call: id, Resource: resource, IDs: ids})
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
