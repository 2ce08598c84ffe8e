package health

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Monitor watches loops. It is safe for concurrent use.
type Monitor struct {
	mu    sync.Mutex
	loops []*Loop
}

// Loop is a loop that a monitor watches. Its methods may be called concurrently, and on
// nil, which is watched by nobody.
type Loop struct {
	name  string
	limit time.Duration
	start time.Time
	// progress is the time since start of the last progress; negative while the loop
	// waits for work.
	progress atomic.Int64
}

// Loop adds a loop, which waits for work.
func (m *Monitor) Loop(name string, limit time.Duration) *Loop {
	l := &Loop{name: name, limit: limit, start: time.Now()}
	l.Rest()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loops = append(m.loops, l)
	return l
}

// Check returns an error that names the loops that are stuck.
func (m *Monitor) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var stuck []string
	for _, l := range m.loops {
		if progress := time.Duration(l.progress.Load()); progress >= 0 && time.Since(l.start)-progress > l.limit {
			stuck = append(stuck, fmt.Sprintf("%s (no progress for %s, the limit is %s)",
				l.name, (time.Since(l.start)-progress).Round(time.Second), l.limit))
		}
	}
	if len(stuck) > 0 {
		return fmt.Errorf("stuck: %s", strings.Join(stuck, ", "))
	}
	return nil
}

// Beat records that the loop has work and makes progress.
func (l *Loop) Beat() {
	if l != nil {
		l.progress.Store(int64(time.Since(l.start)))
	}
}

// Rest records that the loop waits for work.
func (l *Loop) Rest() {
	if l != nil {
		l.progress.Store(-1)
	}
}
