// Package coalesce lets equal requests of several agents share one discovery. Without it,
// a handler that serves a site would look for the same devices once for each node.
//
// Always: a call gets the newest list at once, if there is one, and the discovery ends
// with its last call. Never: a list that the handler may still change.
package coalesce

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"akri.sh/akri/discovery"
)

// Wrap returns a handler that calls another one once for all requests with equal details
// and properties that are open at the same time.
func Wrap(handler discovery.Handler) discovery.Handler {
	return &coalescer{handler: handler, running: map[string]*run{}}
}

type coalescer struct {
	handler discovery.Handler

	mu      sync.Mutex
	running map[string]*run
}

// run is a call of the handler that several calls share. The coalescer's mu protects newest,
// changed and users.
type run struct {
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the handler has returned; err is then set
	err     error
	newest  []discovery.Device // nil before the first list
	changed chan struct{}      // closed when newest is replaced
	users   int
}

// Discover implements [discovery.Handler].
func (c *coalescer) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	key := keyOf(request)
	shared := c.join(key, request)
	defer c.leave(key, shared)
	for {
		c.mu.Lock()
		list, changed := shared.newest, shared.changed
		c.mu.Unlock()
		if list != nil {
			if err := send(list); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-shared.ended:
			return shared.err
		}
	}
}

// join returns the run for a key, and starts it if there is none.
func (c *coalescer) join(key string, request discovery.Request) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.running[key]
	if shared == nil {
		ctx, cancel := context.WithCancel(context.Background())
		shared = &run{cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{})}
		c.running[key] = shared
		go func() {
			err := c.handler.Discover(ctx, request, func(list []discovery.Device) error {
				c.set(shared, list)
				return nil
			})
			c.mu.Lock()
			if c.running[key] == shared { // later calls start another run
				delete(c.running, key)
			}
			c.mu.Unlock()
			shared.err = err
			close(shared.ended)
		}()
	}
	shared.users++
	return shared
}

// leave ends the run with its last user, and waits for it.
func (c *coalescer) leave(key string, shared *run) {
	c.mu.Lock()
	shared.users--
	last := shared.users == 0
	if last && c.running[key] == shared {
		delete(c.running, key)
	}
	c.mu.Unlock()
	if last {
		shared.cancel()
		<-shared.ended
	}
}

// set replaces the newest list of a run.
func (c *coalescer) set(shared *run, list []discovery.Device) {
	list = append([]discovery.Device{}, list...)
	for i := range list {
		list[i].Properties = maps.Clone(list[i].Properties)
		list[i].Mounts, list[i].DeviceSpecs = slices.Clone(list[i].Mounts), slices.Clone(list[i].DeviceSpecs)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	shared.newest = list
	close(shared.changed)
	shared.changed = make(chan struct{})
}

// keyOf returns a text that is equal for equal requests only. A property without a value
// differs from an empty one.
func keyOf(request discovery.Request) string {
	var key strings.Builder
	fmt.Fprintf(&key, "%q", request.Details)
	for _, name := range slices.Sorted(maps.Keys(request.Properties)) {
		value := request.Properties[name]
		fmt.Fprintf(&key, " %q %t %q", name, value == nil, value)
	}
	return key.String()
}
