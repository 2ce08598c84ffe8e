package converge

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/internal/backoff"
)

// Back-off for replacing terminated Pods. It doubles with each replacement and
// resets once the parent's Pods have stayed up for healthyAfter.
const (
	firstReplacement = time.Second
	maxReplacement   = 5 * time.Minute
	healthyAfter     = 10 * time.Minute
)

// podBackoff holds one entry for each parent whose Pods have terminated.
type podBackoff struct {
	mu       sync.Mutex
	byParent map[types.UID]*terminations
}

// terminations is the recent history of a parent's Pods.
type terminations struct {
	replacements int       // since the Pods were last healthy
	latest       time.Time // of the replacements
	due          time.Time // when a terminated Pod may be replaced; zero if none waits
}

func newPodBackoff() *podBackoff {
	return &podBackoff{byParent: map[types.UID]*terminations{}}
}

// wait returns how long to wait before a terminated Pod of the parent is replaced,
// 0 for now. It is called while there is such a Pod.
func (b *podBackoff) wait(parent types.UID, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.byParent[parent]
	if entry == nil {
		entry = &terminations{}
		b.byParent[parent] = entry
	}
	if entry.due.IsZero() {
		if now.Sub(entry.latest) >= healthyAfter {
			entry.replacements = 0
		}
		entry.due = now.Add(backoff.Delay(firstReplacement, maxReplacement, entry.replacements))
	}
	return max(0, entry.due.Sub(now))
}

// replaced records that the terminated Pods of the parent were replaced.
func (b *podBackoff) replaced(parent types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.byParent[parent]; entry != nil {
		entry.replacements++
		entry.latest = now
		entry.due = time.Time{}
	}
}

// none records that the parent has no terminated Pod. If one was waiting, another
// client has removed it, which counts as a replacement: otherwise the next one would
// be replaced without delay.
func (b *podBackoff) none(parent types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.byParent[parent]; entry != nil && !entry.due.IsZero() {
		entry.replacements++
		entry.latest = now
		entry.due = time.Time{}
	}
}

func (b *podBackoff) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byParent)
}

func (b *podBackoff) forget(parent types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byParent, parent)
}
