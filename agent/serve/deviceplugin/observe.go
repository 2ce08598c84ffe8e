package deviceplugin

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"akri.sh/akri/agent/serve/slots"
)

const (
	// gatherTime debounces triggers before an observation: the kubelet's list
	// lags a pod's event by some 10 ms.
	gatherTime = 200 * time.Millisecond
	// minInterval is the first delay between observations while a slot is
	// undecided; maxInterval is the interval without any trigger.
	minInterval = time.Second
	maxInterval = 10 * time.Second
)

// observeSoon requests an observation.
func (s *Server) observeSoon() {
	select {
	case s.trigger <- struct{}{}:
	default:
	}
}

func newObserveBackoff() wait.Backoff {
	return wait.Backoff{Duration: minInterval, Factor: 2, Steps: 8}
}

// observe observes the node's pods until ctx is done: after a trigger, repeatedly
// while a slot is undecided, and at least every maxInterval.
func (s *Server) observe(ctx context.Context) {
	delay, backoff := gatherTime, newObserveBackoff()
	for {
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.trigger:
			timer.Stop()
			backoff = newObserveBackoff()
			sleep(ctx, gatherTime)
		case <-s.observer.Changed():
			timer.Stop()
			backoff = newObserveBackoff()
			sleep(ctx, gatherTime)
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		delay = maxInterval - maxInterval/10 + rand.N(maxInterval/5)
		if again := s.observeOnce(ctx); again {
			delay = min(backoff.Step(), delay)
		}
	}
}

// observeOnce makes one observation. It reports whether another one is due soon.
func (s *Server) observeOnce(ctx context.Context) (again bool) {
	var own []slots.Ref
	var since slots.Generation
	var began time.Duration
	ready := make(chan struct{})
	s.queue.post(func() {
		own, since, began = s.machine.Held(), s.machine.Generation(), s.now()
		close(ready)
	})
	select {
	case <-ready:
	case <-ctx.Done():
		return false
	}
	o, err := s.observer.Observe(ctx, own)
	if err != nil {
		s.log.Debug("Cannot observe the pods of the node", "err", err)
	}
	if len(o.Held)+len(o.Ended) > 0 {
		s.queue.post(func() {
			s.step(slots.PodsObserved{Since: since, Began: began, Held: o.Held, Ended: o.Ended})
		})
	}
	return len(o.Open)+len(o.Ended) > 0 || err != nil && len(own) > 0
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
