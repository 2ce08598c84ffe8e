package build

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is how often a long step reports its progress.
const heartbeat = 10 * time.Second

// progress writes human-readable progress, one line at a time.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

// logf writes one line.
func (p *progress) logf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := time.Since(p.began)
	fmt.Fprintf(p.out, "[%2d:%02d] %s\n", int(t.Minutes()), int(t.Seconds())%60, fmt.Sprintf(format, args...))
}

// repeat writes the result of state at every heartbeat until stop is called.
func (p *progress) repeat(state func() string) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.logf("%s", state())
			}
		}
	})
	return func() { close(done); running.Wait() }
}
