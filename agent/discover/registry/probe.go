package registry

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"akri.sh/akri/internal/backoff"
)

const (
	// probeInterval is how often idle endpoints are probed, on average. Nothing else
	// shows that the Pod of a handler that no Configuration uses is gone.
	probeInterval  = time.Minute
	probeTimeout   = 5 * time.Second
	parallelProbes = 8
)

// Probe connects to idle endpoints now and then, until ctx is done, so that those of
// Pods that no longer exist go offline and are forgotten.
func (r *Registry) Probe(ctx context.Context) error {
	for backoff.Sleep(ctx, probeInterval/2+rand.N(probeInterval)) {
		r.probe(ctx)
	}
	return nil
}

// probe connects to each idle endpoint once, a few at a time.
func (r *Registry) probe(ctx context.Context) {
	group := errgroup.Group{}
	group.SetLimit(parallelProbes)
	for _, endpoint := range r.idle() {
		group.Go(func() error {
			within, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			connection, err := endpoint.dial(within, r.dialer(endpoint))
			switch {
			case err == nil:
				connection.Close()
				r.change(endpoint, func(known *record) { known.reachable(time.Now()) })
			case ctx.Err() == nil:
				r.change(endpoint, func(known *record) { known.unreachable(time.Now()) })
			}
			return nil
		})
	}
	_ = group.Wait() // it returns no errors
}

// idle returns the endpoints that should be probed.
func (r *Registry) idle() []Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	var idle []Endpoint
	for endpoint, known := range r.records {
		if known.idle() {
			idle = append(idle, endpoint)
		}
	}
	return idle
}
