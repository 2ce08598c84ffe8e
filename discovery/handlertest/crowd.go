package handlertest

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"akri.sh/akri/discovery"
)

// Crowd is many requests of a handler at the same time, as many Configurations cause them.
type Crowd struct {
	Handler discovery.Handler
	// Hostile are requests that lead to devices or networks that take as much memory as
	// they can.
	Hostile []discovery.Request
	// Modest is a request that must get a list with this many devices, and keep it.
	Modest  discovery.Request
	Devices int
	// MaxHeap bounds the heap that is in use, in bytes.
	MaxHeap uint64
	// Refused is how many times hostile requests must end because of their memory.
	Refused int
}

const (
	crowdTimeout = 2 * time.Minute
	// gcPercent is that of akri-discovery. What is allocated while garbage is collected
	// counts as in use.
	gcPercent = 50
	// crowdPause is less than agents wait before they repeat a request.
	crowdPause = 50 * time.Millisecond
	// refusal is in the error of a request that takes too much memory.
	refusal = "restrict discoveryDetails, or raise the handler's memory limit"
)

// crowd is a Crowd that runs.
type crowd struct {
	Crowd
	*testing.T

	mu      sync.Mutex // protects what follows
	refused int
	devices int // of the modest request
}

// Run runs all requests, and repeats those that end, until as many as wanted have been
// refused and the modest one has its devices. It returns the largest heap that was in use.
func (c Crowd) Run(t *testing.T) (peak uint64) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	running := &crowd{Crowd: c, T: t}
	running.Handler = discovery.Bound(c.Handler)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { running.modest(ctx) })
	for _, request := range c.Hostile {
		group.Go(func() { running.hostile(ctx, request) })
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(crowdTimeout); ; <-ticker.C {
		peak = max(peak, heapInUse())
		refused, devices := running.state()
		switch {
		case peak > c.MaxHeap:
			t.Errorf("%d MiB are in use, the limit is %d MiB; %d requests have been refused", peak>>20, c.MaxHeap>>20, refused)
			return peak
		case refused >= c.Refused && devices == c.Devices:
			t.Logf("%d MiB were in use, %d requests were refused", peak>>20, refused)
			return peak
		case time.Now().After(deadline):
			t.Errorf("%d requests were refused, want %d; the modest one has %d devices, want %d", refused, c.Refused, devices, c.Devices)
			return peak
		}
	}
}

// heapInUse returns what the heap and the stacks hold, without garbage.
func heapInUse() uint64 {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

func (c *crowd) state() (refused, devices int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused, c.devices
}

// modest keeps the modest request open. It must not be refused.
func (c *crowd) modest(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.Handler.Discover(ctx, c.Modest, func(devices []discovery.Device) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.devices = len(devices)
			return nil
		})
		if ctx.Err() == nil {
			c.Errorf("the modest request has ended: %v", err)
			pauseFor(ctx, crowdPause)
		}
	}
}

// hostile keeps a hostile request open.
func (c *crowd) hostile(ctx context.Context, request discovery.Request) {
	for ctx.Err() == nil {
		err := c.Handler.Discover(ctx, request, func([]discovery.Device) error { return nil })
		if err != nil && strings.Contains(err.Error(), refusal) {
			c.mu.Lock()
			c.refused++
			c.mu.Unlock()
		}
		pauseFor(ctx, crowdPause)
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
