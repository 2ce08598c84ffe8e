package deviceplugin

import (
	"context"
	"time"

	"akri.sh/akri/agent/serve/slots"
)

// allocateDeadline bounds a call of the kubelet, which sets no limit itself. A slow
// response blocks every pod of the node.
const allocateDeadline = 2 * time.Second

// allocate implements [allocator].
func (s *Server) allocate(ctx context.Context, instance string, numbers []int) error {
	a := s.call(ctx, func(call slots.Call) slots.Event {
		return slots.AllocateRequested{Call: call, Instance: instance, Slots: numbers}
	})
	return a.err
}

// prefer implements [allocator].
func (s *Server) prefer(ctx context.Context, instance string, available, must []int, size int) ([]int, error) {
	a := s.call(ctx, func(call slots.Call) slots.Event {
		return slots.PreferenceAsked{Call: call, Instance: instance, Available: available, Must: must, Size: size}
	})
	return a.slots, a.err
}

// call passes a call of the kubelet to the loop and waits for the answer.
func (s *Server) call(ctx context.Context, event func(slots.Call) slots.Event) answer {
	ctx, cancel := context.WithTimeout(ctx, allocateDeadline)
	defer cancel()
	answers, calls := make(chan answer, 1), make(chan slots.Call, 1)
	s.queue.post(func() {
		s.nextCall++
		s.answers[s.nextCall] = answers
		calls <- s.nextCall
		s.step(event(s.nextCall))
	})
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		s.queue.post(func() {
			select {
			case call := <-calls:
				s.step(slots.CallExpired{Call: call})
			default:
			}
		})
	case <-s.stopped:
	}
	select {
	case a := <-answers: // a late answer, or the reason for the expiry
		return a
	case <-s.stopped:
		return answer{err: errStopping}
	}
}
