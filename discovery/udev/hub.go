package udev

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxPending bounds the devices that a subscription remembers. Beyond it, everything is
// scanned.
const maxPending = 1000

// defaultReopenInterval is how long a source that cannot be opened is left alone.
const defaultReopenInterval = time.Minute

// hub distributes the events of one socket and one watch to all requests. The sources
// are open while there is a subscription.
type hub struct {
	tree           *tree
	reopenInterval time.Duration

	mu            sync.Mutex // protects what follows
	subscriptions map[*subscription]bool
	stop          func()
}

// subscription collects events until they are taken.
type subscription struct {
	hub *hub
	// ready has a value while there are events.
	ready chan struct{}

	mu      sync.Mutex // protects what follows
	pending map[string]bool
	all     bool
}

// subscribe returns a subscription to events from now on.
func (h *hub) subscribe() *subscription {
	s := &subscription{hub: h, ready: make(chan struct{}, 1), pending: map[string]bool{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subscriptions) == 0 {
		h.subscriptions = map[*subscription]bool{}
		h.stop = h.start()
	}
	h.subscriptions[s] = true
	return s
}

// close ends a subscription, and the sources with the last one.
func (s *subscription) close() {
	h := s.hub
	var stop func()
	h.mu.Lock()
	delete(h.subscriptions, s)
	if len(h.subscriptions) == 0 {
		stop, h.stop = h.stop, nil
	}
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// add records events for devices; without any, for all devices.
func (s *subscription) add(devPaths ...string) {
	s.mu.Lock()
	for _, devPath := range devPaths {
		s.pending[devPath] = true
	}
	if len(devPaths) == 0 || len(s.pending) > maxPending {
		s.all = true
		clear(s.pending)
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default: // it already has one
	}
}

// take returns the devices with events, sorted, and whether all devices must be scanned.
func (s *subscription) take() (devPaths []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	devPaths, all = slices.Sorted(maps.Keys(s.pending)), s.all
	s.all = false
	clear(s.pending)
	return devPaths, all
}

// publish gives events to all subscriptions.
func (h *hub) publish(devPaths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscriptions {
		s.add(devPaths...)
	}
}

// start opens the sources and distributes their events until stop is called. While a
// source cannot be opened, the scans replace it.
func (h *hub) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	uevents, watch := h.openUevents(), h.openDataWatch()
	running.Go(func() {
		for h.receive(ctx, uevents) {
			if uevents = h.openUevents(); uevents != nil {
				h.publish() // what has happened meanwhile
			}
		}
	})
	running.Go(func() {
		for h.watch(ctx, watch) {
			if watch = h.openDataWatch(); watch != nil {
				h.publish() // what has happened meanwhile
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// openUevents returns nil if the socket cannot be opened.
func (h *hub) openUevents() *ueventSocket {
	uevents, err := openUevents()
	if err != nil {
		h.tree.failed(failedUevents)
		slog.Warn("Kernel events cannot be received; until they can, devices are found by scans only", "err", err)
		return nil
	}
	return uevents
}

// openDataWatch returns nil if the database cannot be watched, for example because the
// node has no inotify instances left. That there is no database is not a failure.
func (h *hub) openDataWatch() *dataWatch {
	watch, err := openDataWatch(h.tree)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		h.unwatched(err)
		return nil
	}
	return watch
}

func (h *hub) unwatched(err error) {
	h.tree.failed(failedDataWatch)
	slog.Warn("The database of udev cannot be watched; until it can, its changes are found by scans only", "err", err)
}

// pause waits before a source is opened again.
func (h *hub) pause(ctx context.Context) (again bool) {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(h.reopenInterval):
		return true
	}
}

// receive distributes kernel events. It returns whether to open the socket again.
func (h *hub) receive(ctx context.Context, uevents *ueventSocket) (again bool) {
	if uevents == nil {
		return h.pause(ctx)
	}
	defer uevents.close()
	for {
		devPaths, err := uevents.receive(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errLost):
			h.tree.failed(failedEventsLost)
			h.publish()
		case err != nil:
			h.tree.failed(failedUevents)
			slog.Error("Kernel events are no longer received", "err", err)
			return h.pause(ctx)
		default:
			h.publish(devPaths...)
		}
	}
}

// watch distributes changes of udev's database. It returns whether to open it again.
func (h *hub) watch(ctx context.Context, watch *dataWatch) (again bool) {
	if watch == nil {
		return h.pause(ctx)
	}
	defer watch.close()
	for {
		var devPath string
		var isAbout bool
		var err error
		select {
		case <-ctx.Done():
			return false
		case event := <-watch.watcher.Events:
			devPath, isAbout, err = watch.changed(event)
		case lost := <-watch.watcher.Errors:
			h.tree.failed(failedEventsLost)
			slog.Warn("Changes of udev's database were lost; scanning all devices", "err", lost)
			isAbout, err = true, watch.attach() // the directory may be another one now
		}
		switch {
		case err != nil:
			h.unwatched(err)
			return h.pause(ctx)
		case isAbout && devPath == "":
			h.publish()
		case isAbout:
			h.publish(devPath)
		}
	}
}
