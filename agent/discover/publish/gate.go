package publish

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/text"
)

const (
	// minWriteInterval is the time between two writes of this agent to one Instance that
	// exists: a property that changes with each message of its handler, or another program
	// that reverts the agent's changes.
	minWriteInterval = time.Second
	// maxNodeWrites and maxWrites bound the writes per second of an agent, and of one
	// Configuration, that do not stop: devices that come and go with each message. The
	// bursts are a thousand devices that appear, or disappear, in one message. Each
	// Configuration has its own limiter, because a few that use up that of the node would
	// keep the devices of all others waiting.
	maxNodeWrites, maxNodeBurst = 200, 2000
	maxWrites, maxBurst         = 50, 1000
	// minConflictDelay and maxConflictDelay bound the delay before another attempt to write
	// an Instance that other agents keep changing. A thousand nodes may see a device at the
	// same time, so the delay grows, and is random.
	minConflictDelay, maxConflictDelay = 50 * time.Millisecond, 10 * time.Second
	// minRefusedDelay and maxRefusedDelay bound the delay before a write that the API server
	// refused is repeated without a change: a quota, a policy or a permission may have changed.
	minRefusedDelay, maxRefusedDelay = time.Second, 5 * time.Minute
	// holdAge is how long after its end a hold is remembered, for the delay of the next one.
	// The writes per second therefore bound the memory.
	holdAge = time.Minute
	// changesDelay is how long writes must wait again and again before that is a failure, and
	// changesCalm is the time without a wait after which it ends. A Configuration writes its
	// burst a second time in less.
	changesDelay, changesCalm = 30 * time.Second, 30 * time.Second
)

// reason says why an Instance is not written.
type reason int

const (
	_         reason = iota
	recent           // this agent wrote it less than minWriteInterval ago
	contended        // other agents keep changing it
	refused          // the API server does not accept it
	tooMany          // the Configuration, or the node, has no write left
	failed           // another error: the back-off of the queue decides when to try again
)

// verdict is the answer of a [gate]. The zero value means that the Instance may be written
// now, or is as it should be.
type verdict struct {
	why   reason
	until time.Time // when to ask again; zero for failed
	err   error     // of refused and failed
}

// gate answers whether an Instance may be written now. What may not be written is left to a
// later pass, which writes the last state only. It is safe for concurrent use.
type gate struct {
	mu             sync.Mutex
	writes         *rate.Limiter
	instances      map[types.NamespacedName]hold
	configurations map[types.NamespacedName]*changes
	swept          time.Time
}

// hold is the reason why an Instance is not written for a while.
type hold struct {
	verdict
	step  [sha256.Size]byte // that was refused
	count int               // of holds with this reason before
}

// changes are the writes of a Configuration, and the time in which they wait again and again.
type changes struct {
	writes        *rate.Limiter
	since, last   time.Time
	device, limit string // of the first wait, so that the failure does not change
}

func newGate() *gate {
	return &gate{
		writes:    rate.NewLimiter(maxNodeWrites, maxNodeBurst),
		instances: map[types.NamespacedName]hold{}, configurations: map[types.NamespacedName]*changes{},
	}
}

// ask returns whether a step may be taken now, which then counts as a write of the
// Configuration. A device that is new, or gone, does not wait for minWriteInterval.
func (g *gate) ask(configuration types.NamespacedName, step Step, now time.Time) verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	of := g.configurations[configuration]
	if of == nil {
		of = &changes{writes: rate.NewLimiter(maxWrites, maxBurst)}
		g.configurations[configuration] = of
	}
	if held, found := g.instances[step.name()]; found && now.Before(held.until) {
		switch {
		case held.why == recent && step.Action == Update:
			of.wait(step, fmt.Sprintf("an Instance once in %s", minWriteInterval), now)
			return held.verdict
		case held.why == contended, held.why == refused && held.step == digest(step):
			return held.verdict
		}
	}
	later := verdict{why: tooMany, until: now.Add(minWriteInterval)} // by then, some writes are left
	switch {
	case of.writes.TokensAt(now) < 1:
		of.wait(step, fmt.Sprintf("the Instances of a Configuration %d times a second", maxWrites), now)
		return later
	case !g.writes.AllowN(now, 1): // a write that waits for others takes nothing from its Configuration
		if of.writes.TokensAt(now) < maxBurst/2 { // otherwise, only the others write too much
			of.wait(step, fmt.Sprintf("all Instances of a node %d times a second", maxNodeWrites), now)
		}
		return later
	}
	of.writes.AllowN(now, 1)
	return verdict{}
}

// wrote records that a step was taken.
func (g *gate) wrote(step Step, now time.Time) {
	if step.Action == Update || step.Action == Leave {
		g.hold(step, verdict{why: recent}, now)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.instances, step.name())
}

// hold records why a step is not to be taken, or its Instance not to be written, for a
// while, and returns until when.
func (g *gate) hold(step Step, v verdict, now time.Time) verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := hold{verdict: v}
	if v.why == refused {
		held.step = digest(step)
	}
	if before := g.instances[step.name()]; before.why == v.why && before.step == held.step {
		held.count = before.count + 1
	}
	delay := minWriteInterval
	switch v.why {
	case contended:
		delay = wait.Jitter(backoff.Delay(minConflictDelay, maxConflictDelay, held.count), 1)
	case refused:
		delay = wait.Jitter(backoff.Delay(minRefusedDelay, maxRefusedDelay, held.count), 0.5)
	}
	held.until = now.Add(delay)
	g.instances[step.name()] = held
	return held.verdict
}

// digest identifies what a step makes of an Instance.
func digest(step Step) [sha256.Size]byte {
	var what any = step.Patch
	if step.Want != nil {
		what = step.Want.Spec
	}
	data, _ := json.Marshal([]any{step.Action, what}) // maps are sorted; it has nothing that cannot be encoded
	return sha256.Sum256(data)
}

// wait records that a step waits for a limit.
func (c *changes) wait(step Step, limit string, now time.Time) {
	if now.Sub(c.last) >= changesCalm {
		c.since, c.limit = now, limit
		c.device = step.instance().Annotations[v0.AnnotationDeviceID]
	}
	c.last = now
}

// failure returns the failure that the devices of a Configuration change too often, or "",
// and when that may change without an event; zero for never.
func (g *gate) failure(configuration types.NamespacedName, now time.Time) (failure string, next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.configurations[configuration]
	if c == nil || c.last.Sub(c.since) < changesDelay || now.Sub(c.last) >= changesCalm {
		return "", time.Time{}
	}
	return fmt.Sprintf("devices such as %q change more often than the agent writes them (%s): only the latest state is written: "+
		"let the handler report less often, or leave out what changes", text.Truncate(c.device, maxShown), c.limit), c.last.Add(changesCalm)
}

// sweep forgets what no longer matters. The caller holds mu.
func (g *gate) sweep(now time.Time) {
	if now.Sub(g.swept) < holdAge {
		return
	}
	g.swept = now
	for name, held := range g.instances {
		if now.Sub(held.until) >= holdAge {
			delete(g.instances, name)
		}
	}
	for name, c := range g.configurations {
		if now.Sub(c.last) >= changesCalm && c.writes.TokensAt(now) >= maxBurst {
			delete(g.configurations, name)
		}
	}
}
