package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How soon a Pod that has ended is replaced: the first time soon, then less and
// less soon, until the parent's Pods have lasted for a while.
const (
	firstReplacement = time.Second
	lastReplacement  = 5 * time.Minute
	healthyAfter     = 10 * time.Minute
)

// endings remembers how often the Pods of a parent have ended. It holds one
// entry for each parent whose Pods did.
type endings struct {
	mutex    sync.Mutex
	byParent map[types.UID]*ending
}

type ending struct {
	replaced int       // how often, since the parent's Pods last were healthy
	latest   time.Time // when the latest was replaced
	due      time.Time // when the one that has ended may be replaced; zero if none has
}

func newEndings() *endings {
	return &endings{byParent: map[types.UID]*ending{}}
}

// wait is called while a Pod of the parent has ended: it is how long to wait
// before it is replaced; 0 is now.
func (e *endings) wait(parent types.UID, now time.Time) time.Duration {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	entry := e.byParent[parent]
	if entry == nil {
		entry = &ending{}
		e.byParent[parent] = entry
	}
	if entry.due.IsZero() {
		if now.Sub(entry.latest) >= healthyAfter {
			entry.replaced = 0
		}
		delay := lastReplacement
		if entry.replaced < 9 { // 2⁹ s are more than the most
			delay = min(delay, firstReplacement<<entry.replaced)
		}
		entry.due = now.Add(delay)
	}
	return max(0, entry.due.Sub(now))
}

// replaced notes that the Pods that had ended were replaced.
func (e *endings) replaced(parent types.UID, now time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if entry := e.byParent[parent]; entry != nil {
		entry.replaced++
		entry.latest = now
		entry.due = time.Time{}
	}
}

func (e *endings) len() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return len(e.byParent)
}

func (e *endings) forget(parent types.UID) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	delete(e.byParent, parent)
}
