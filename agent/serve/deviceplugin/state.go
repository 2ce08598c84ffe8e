package deviceplugin

import (
	"context"
	"fmt"
	"time"

	"akri.sh/akri/agent/serve/slots"
)

// scrapeTimeout bounds how long a scrape waits for the loop.
const scrapeTimeout = time.Second

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
	Slots slots.Counts
	// Connected and Disconnected are the numbers of resources whose list the kubelet
	// receives, and of those whose list it does not.
	Connected, Disconnected int
}

// scrape returns the state for a scrape of the metrics.
func (s *Server) scrape() (Snapshot, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	snapshot, err := ask(ctx, s, func() Snapshot {
		snapshot := Snapshot{Slots: s.machine.Counts()}
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
