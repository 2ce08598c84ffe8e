package embedded

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/internal/backoff"
)

const (
	minRetryDelay = time.Second
	maxRetryDelay = time.Minute
	// nameLabel is the label of the agent's metrics with the name of a handler.
	nameLabel = "discovery_handler_name"
)

// Handlers are the discovery handlers of this process.
type Handlers struct {
	dir     string
	log     *slog.Logger
	created map[string]created

	running sync.WaitGroup
	ctx     context.Context
	end     context.CancelFunc
}

// created is a handler that can be served.
type created struct {
	discovery.Handler
	shared bool
}

// New creates handlers with different names, for the agent in a directory. Their
// metrics have a label with the handler's name. Close must be called even if Start is
// not.
func New(handlers []embeddable.Handler, dir string, metrics prometheus.Registerer, log *slog.Logger) *Handlers {
	h := &Handlers{dir: dir, log: log, created: map[string]created{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	for _, each := range handlers {
		own := monitor.New(prometheus.WrapRegistererWith(prometheus.Labels{nameLabel: each.Name}, metrics))
		named := log.With("handler", each.Name)
		h.created[each.Name] = created{own.Wrap(each.New(own, named), named), each.Shared}
	}
	return h
}

// Start serves the handlers until Close is called.
func (h *Handlers) Start() {
	for name, handler := range h.created {
		h.running.Go(func() { h.serve(name, handler) })
	}
}

// Close stops the handlers and waits for them. A stream to one of them breaks, so the
// caller closes the streams first.
func (h *Handlers) Close() {
	h.end()
	h.running.Wait()
}

// serve serves a handler, and again when that fails.
func (h *Handlers) serve(name string, handler created) {
	for failures := 0; ; failures++ {
		err := discovery.Serve(h.ctx, name, handler, discovery.Options{
			Shared: handler.shared, Dir: h.dir, Socket: name + registry.EmbeddedSuffix, Logger: h.log,
		})
		if h.ctx.Err() != nil {
			return
		}
		delay := backoff.Delay(minRetryDelay, maxRetryDelay, failures)
		h.log.Error("Embedded discovery handler failed; retrying", "handler", name, "err", err, "delay", delay)
		if !backoff.Sleep(h.ctx, delay) {
			return
		}
	}
}
