package deviceplugin

import (
	"context"
	"sync"
	"time"

	"akri.sh/akri/internal/backoff"
)

const (
	// maxListDelay bounds how long a list waits for calls. A call may itself wait for
	// what the list shows.
	maxListDelay = 250 * time.Millisecond
	// entryTime is how long the kubelet may take to enter the IDs of a response.
	entryTime = 20 * time.Millisecond
)

// allocations are the Allocate calls in progress.
//
// The kubelet must not be listed meanwhile. Each list lets it drop the devices of Pods
// that have ended, and with them the reservations of devices whose Allocate has not
// returned: it would give such a device to a second container
// (https://github.com/kubernetes/kubernetes/pull/137534).
type allocations struct {
	mu    sync.Mutex
	count int
	// none is closed while there are no calls; nil means the same.
	none chan struct{}
	last time.Time // when a call ended
}

func (a *allocations) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == 0 {
		a.none = make(chan struct{})
	}
	a.count++
}

func (a *allocations) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now()
	if a.count--; a.count == 0 {
		close(a.none)
		a.none = nil
	}
}

// wait returns when the kubelet can be listed: entryTime after the last call has ended,
// or after maxListDelay.
func (a *allocations) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxListDelay)
	defer cancel()
	for ctx.Err() == nil {
		a.mu.Lock()
		none, left := a.none, entryTime-time.Since(a.last)
		a.mu.Unlock()
		switch {
		case none != nil:
			select {
			case <-none:
			case <-ctx.Done():
			}
		case left > 0:
			backoff.Sleep(ctx, left)
		default:
			return
		}
	}
}
