package publish

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/internal/text"
)

const (
	// throttleReportDelay is how long writes must be delayed again and again before that is
	// a failure: many devices that appear at once are none.
	throttleReportDelay = 30 * time.Second
	// throttleCalm is the time without a delay after which the failure ends.
	throttleCalm = 30 * time.Second
)

// throttles are the Configurations whose handlers cause more writes than [pace] permits. It
// is safe for concurrent use.
type throttles struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*throttle
}

// throttle is the time in which writes of a Configuration are delayed again and again.
type throttle struct {
	since, last time.Time
	device      string // the ID of the last device that waited
}

func newThrottles() *throttles { return &throttles{all: map[types.NamespacedName]*throttle{}} }

// add records that the write of a device's Instance is delayed.
func (t *throttles) add(configuration types.NamespacedName, device string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.all[configuration]
	if known == nil || now.Sub(known.last) >= throttleCalm {
		known = &throttle{since: now}
		t.all[configuration] = known
	}
	known.last, known.device = now, device
}

// report returns the failure of a Configuration's handler, or "", and when that may change
// without an event; zero for never.
func (t *throttles) report(configuration types.NamespacedName, now time.Time) (failure string, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.all[configuration]
	switch {
	case known == nil:
		return "", time.Time{}
	case now.Sub(known.last) >= throttleCalm:
		delete(t.all, configuration)
		return "", time.Time{}
	case known.last.Sub(known.since) < throttleReportDelay:
		return "", time.Time{}
	}
	return fmt.Sprintf("devices such as %q change more often than agents write them (an Instance once in %s, a namespace %d times a second): "+
		"only the latest state is written: let the handler report less often, or leave out what changes",
		text.Truncate(known.device, maxShown), minWriteInterval, maxNamespaceWritesPerSecond), known.last.Add(throttleCalm)
}

// forget drops what is known about a Configuration.
func (t *throttles) forget(configuration types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, configuration)
}
