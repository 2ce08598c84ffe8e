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
	// writes are those of Configurations since began, and former those of the period before.
	writes, former map[types.NamespacedName]int
	began          time.Time
}

// throttle is the time in which writes of a Configuration are delayed again and again.
type throttle struct {
	since, last time.Time
	device      string // the ID of the last device that waited
}

func newThrottles() *throttles {
	return &throttles{
		all: map[types.NamespacedName]*throttle{}, writes: map[types.NamespacedName]int{}, former: map[types.NamespacedName]int{},
	}
}

// wrote records that an Instance of a Configuration is written.
func (t *throttles) wrote(configuration types.NamespacedName, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch age := now.Sub(t.began); {
	case age >= 2*throttleReportDelay:
		t.former, t.writes, t.began = map[types.NamespacedName]int{}, map[types.NamespacedName]int{}, now
	case age >= throttleReportDelay:
		t.former, t.writes, t.began = t.writes, map[types.NamespacedName]int{}, now
	}
	t.writes[configuration]++
}

// causes reports whether a Configuration is a reason why there are too many writes: it
// caused at least half as many as the average. Of those that share a namespace's writes, at
// least one did, and the others only wait for it. The caller holds mu.
func (t *throttles) causes(configuration types.NamespacedName) bool {
	total, count := 0, len(t.writes)
	for _, writes := range t.writes {
		total += writes
	}
	for name, writes := range t.former {
		total += writes
		if t.writes[name] == 0 {
			count++
		}
	}
	return 2*count*(t.writes[configuration]+t.former[configuration]) >= total
}

// add records that the write of a device's Instance is delayed: because the Instance itself
// was written just now, or because there are too many writes of all.
func (t *throttles) add(configuration types.NamespacedName, device string, itself bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !itself && !t.causes(configuration) {
		return
	}
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
