package handlertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"akri.sh/akri/discovery"
)

// observer passes calls on to a handler, and observes how it behaves.
type observer struct {
	handler discovery.Handler

	mu      sync.Mutex
	open    int
	mistake error
}

// Discover implements [discovery.Handler].
func (o *observer) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	o.add(1)
	defer o.add(-1)
	var sending atomic.Int32
	var returned atomic.Bool
	defer returned.Store(true)
	return o.handler.Discover(ctx, request, func(l []discovery.Device) error {
		if returned.Load() {
			o.record(errors.New("send was called after Discover had returned"))
			return context.Canceled
		}
		defer sending.Add(-1)
		if sending.Add(1) > 1 {
			o.record(errors.New("send was called while another call of it had not returned"))
			return context.Canceled
		}
		return send(l)
	})
}

func (o *observer) add(calls int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += calls
}

func (o *observer) record(mistake error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mistake = mistake
}

// misuse returns the last mistake in the use of send.
func (o *observer) misuse() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mistake
}

// idle waits until no call is open; all have been cancelled.
func (o *observer) idle(within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		o.mu.Lock()
		open := o.open
		o.mu.Unlock()
		if open == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d calls have not returned %v after their contexts were done", open, within)
		}
	}
}
