package publish

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"akri.sh/akri/internal/backoff"
)

const (
	// minWriteInterval is the time between two writes of this agent to one Instance
	// that exists: a property that changes with each message of its handler, or
	// another program that reverts the agent's changes.
	minWriteInterval = time.Second
	// maxWritesPerSecond bounds the writes of an agent that do not stop: handlers
	// whose devices come and go with each message.
	maxWritesPerSecond = 100
	// maxWriteBurst is how many writes it may send at once: a thousand devices that
	// appear, and disappear, in one message.
	maxWriteBurst = 2000
	// maxNamespaceWritesPerSecond and maxNamespaceWriteBurst bound those of one namespace, so
	// that the devices of others need not wait.
	maxNamespaceWritesPerSecond = maxWritesPerSecond / 2
	maxNamespaceWriteBurst      = maxWriteBurst / 2
	// minConflictDelay and maxConflictDelay bound the delay before another attempt to
	// write an Instance that other agents keep changing. It grows, and is random.
	minConflictDelay = 50 * time.Millisecond
	maxConflictDelay = 10 * time.Second
)

// pace bounds the writes that discovery handlers cause. A write that may not
// be sent now is left to a later pass: only the last state is written then. It is safe for
// concurrent use.
type pace struct {
	mu         sync.Mutex
	writes     *rate.Limiter
	namespaces map[string]*rate.Limiter // by namespace; those whose burst is not complete
	last       map[types.NamespacedName]time.Time
	pruned     time.Time
	conflicts  map[types.NamespacedName]*conflict
}

// conflict is what happened to the last attempts to write an Instance.
type conflict struct {
	count int
	until time.Time
}

func newPace() *pace {
	return &pace{
		writes: rate.NewLimiter(maxWritesPerSecond, maxWriteBurst), namespaces: map[string]*rate.Limiter{},
		last: map[types.NamespacedName]time.Time{}, conflicts: map[types.NamespacedName]*conflict{},
	}
}

// contended records that other agents wrote an Instance first, more than once, and
// returns when to try again. A thousand nodes may see a device at the same time.
func (p *pace) contended(instance types.NamespacedName, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conflicts[instance]
	if c == nil {
		c = &conflict{}
		p.conflicts[instance] = c
	}
	c.until = now.Add(wait.Jitter(backoff.Delay(minConflictDelay, maxConflictDelay, c.count), 1))
	c.count++
	delete(p.last, instance) // nothing was written
	return c.until
}

// contends reports whether other agents are the reason to try again at a time, and not how
// often this agent wants to write.
func (p *pace) contends(instance types.NamespacedName, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conflicts[instance]
	return c != nil && c.until.Equal(at)
}

// repeats reports whether the reason to try again at a time is that this agent wrote the
// Instance just now.
func (p *pace) repeats(instance types.NamespacedName, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, found := p.last[instance]
	return found && last.Add(minWriteInterval).Equal(at)
}

// failed records that a write has failed. The caller's back-off decides when to try
// again.
func (p *pace) failed(instance types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, instance)
}

// admit returns the zero time if a write may be sent now, which then counts, and
// otherwise when to ask again. Only updates wait for [minWriteInterval]: a device that
// is new is visible at once, and one that is gone is gone at once.
func (p *pace) admit(instance types.NamespacedName, action Action, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.pruned) > minWriteInterval {
		for name, at := range p.last {
			if now.Sub(at) >= minWriteInterval {
				delete(p.last, name)
			}
		}
		for name, c := range p.conflicts {
			if now.Sub(c.until) >= maxConflictDelay { // it has been written
				delete(p.conflicts, name)
			}
		}
		for namespace, writes := range p.namespaces {
			if writes.TokensAt(now) >= maxNamespaceWriteBurst {
				delete(p.namespaces, namespace)
			}
		}
		p.pruned = now
	}
	if c := p.conflicts[instance]; c != nil && now.Before(c.until) {
		return c.until
	}
	if last, found := p.last[instance]; found && action == Update && now.Sub(last) < minWriteInterval {
		return last.Add(minWriteInterval)
	}
	if !p.allow(instance.Namespace, now) {
		return now.Add(minWriteInterval) // by then, many tokens are there
	}
	switch action {
	case Update, Leave:
		p.last[instance] = now
	case Delete:
		delete(p.last, instance)
	}
	return time.Time{}
}

// allow reports whether a namespace may write now, which then counts. A write that waits
// for others takes nothing from its namespace. The caller holds mu.
func (p *pace) allow(namespace string, now time.Time) bool {
	writes := p.namespaces[namespace]
	if writes == nil {
		writes = rate.NewLimiter(maxNamespaceWritesPerSecond, maxNamespaceWriteBurst)
		p.namespaces[namespace] = writes
	}
	return writes.TokensAt(now) >= 1 && p.writes.AllowN(now, 1) && writes.AllowN(now, 1)
}
