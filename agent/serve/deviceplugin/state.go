package deviceplugin

import (
	"context"
	"fmt"
	"time"

	"akri.sh/akri/agent/serve/slots"
)

const (
	// scrapeTimeout bounds how long a scrape waits for the loop.
	scrapeTimeout = time.Second
	// checkInterval is the shortest time between two checks of the invariants, whose
	// cost grows with the number of slots. There is none while nothing happens.
	checkInterval = 10 * time.Second
)

// ask runs a function on the loop and returns its result.
func ask[T any](ctx context.Context, s *Server, f func() T) (T, error) {
	result := make(chan T, 1)
	s.queue.post(func() { result <- f() })
	var none T
	select {
	case found := <-result:
		return found, nil
	case <-ctx.Done():
		return none, fmt.Errorf("the loop of the slots does not respond: %w", ctx.Err())
	case <-s.stopped:
		return none, errStopping
	}
}

// Snapshot is what the gauges show.
type Snapshot struct {
	Slots slots.State
	// Connected and Disconnected are the numbers of resources whose list the kubelet
	// receives, and of those whose list it does not.
	Connected, Disconnected int
}

// scrape returns the state for a scrape of the metrics.
func (s *Server) scrape() (Snapshot, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	snapshot, err := ask(ctx, s, func() Snapshot {
		snapshot := Snapshot{Slots: s.machine.State()}
		for _, r := range s.resources {
			if r.connected() {
				snapshot.Connected++
			} else {
				snapshot.Disconnected++
			}
		}
		return snapshot
	})
	return snapshot, err == nil
}

// check looks for violated invariants. Each is logged when it appears.
func (s *Server) check() {
	violations := s.invariants(s.machine.State())
	s.metrics.violated(violations)
	known := s.violations
	s.violations = make(map[slots.Violation]bool, len(violations))
	for _, v := range violations {
		s.violations[v] = true
		if !known[v] {
			s.log.Error("An invariant of the slots is violated; this is a bug", "invariant", v.Invariant, "where", v.Where, "what", v.What)
		}
	}
}
