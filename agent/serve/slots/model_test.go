package slots_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// runSchedules runs a range of seeds on all processors, up to the first that violates an
// invariant. Without a violation, that is the one after the last.
func runSchedules(first, last uint64) (total stats, violated uint64) {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		next    = first
	)
	violated = last + 1
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				done := seed >= violated
				mu.Unlock()
				if done {
					return
				}
				w := newWorld(seed, false)
				w.run()
				mu.Lock()
				total.add(w.stats)
				if w.violation != "" {
					violated = min(violated, seed)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return total, violated
}

// stats show what the schedules reach.
type stats struct {
	Events, Granted, Groups, Several, Refused, Crashes, Forced, Landed int
	// Checks are those that the schedules make.
	Checks tally
}

func (s *stats) add(o stats) {
	s.Events += o.Events
	s.Granted += o.Granted
	s.Groups += o.Groups
	s.Several += o.Several
	s.Refused += o.Refused
	s.Crashes += o.Crashes
	s.Forced += o.Forced
	s.Landed += o.Landed
	s.Checks.add(o.Checks)
}

// world is the API server with its Instances, and the nodes. It runs what is planned in
// the order of its time.
//
// Only the machine is the real one: claims, observations and the cache of Instances are
// modelled. Their own packages test them, and e2e/slots tests all of them on real nodes.
type world struct {
	rng       *rand.Rand
	lives     int           // how often the usual time Pods live
	crowded   bool          // see crowd
	busyUntil time.Duration // the kubelets do not call the agents until then
	now       time.Duration
	plan      plan
	planned   int
	version   uint64
	objects   map[string]*object
	names     []string // of objects, sorted
	nodes     []*node
	nextCall  slots.Call
	faults    map[fault]bool
	calm      bool // no further Pods and faults
	violation string
	verbose   bool
	log       []string
	stats     stats
	// excused are slots that a user edited while a container had them, until no container
	// has them. restoring are those whose Instance was deleted, until the record names the
	// owner again: other nodes must wait for that.
	excused, restoring map[slots.Ref]bool
	// late are the patches that arrive after their agents have given them up.
	late []*patch
	// edited are slots whose owner a user has changed, until that has no effect any more.
	edited map[slots.Ref]bool
}

// action is something that happens at a time.
type action struct {
	at    time.Duration
	order int
	do    func()
}

// plan implements [heap.Interface].
type plan []action

func (p plan) Len() int { return len(p) }
func (p plan) Less(i, j int) bool {
	return p[i].at < p[j].at || p[i].at == p[j].at && p[i].order < p[j].order
}
func (p plan) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *plan) Push(x any)   { *p = append(*p, x.(action)) }
func (p *plan) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.planned++
	heap.Push(&w.plan, action{w.now + d, w.planned, do})
}

// upTo returns a random duration below a limit.
func (w *world) upTo(limit time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(limit)))
}

// oneIn reports whether a choice is made, one time in n.
func (w *world) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *world) note(format string, args ...any) {
	if w.verbose {
		w.log = append(w.log, fmt.Sprintf("%9.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf("at %.3fs: ", w.now.Seconds()) + fmt.Sprintf(format, args...)
	}
}

const (
	// busyTime is how long Pods come and faults happen; calmTime is how long the world
	// is then observed, without either.
	busyTime = 40 * time.Second
	calmTime = 20 * time.Second
)

func newWorld(seed uint64, verbose bool) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 0)), lives: 1,
		objects: map[string]*object{}, version: 1, verbose: verbose,
		faults: map[fault]bool{}, excused: map[slots.Ref]bool{}, restoring: map[slots.Ref]bool{}, edited: map[slots.Ref]bool{},
	}
	for f := range numberOfFaults {
		w.faults[f] = w.chance(35)
	}
	switch {
	case w.oneIn(5):
		w.lives = 4
	case w.oneIn(4):
		w.crowded = true
	}
	for i := range 1 + w.rng.IntN(3) {
		name := fmt.Sprintf("cam-%c", 'a'+i)
		o := &object{
			w: w, name: name, exists: true, shared: w.chance(80), configured: 1 + w.rng.IntN(3),
			usage: map[int]v0.Owner{}, labels: map[string]bool{},
		}
		if w.crowded {
			o.configured++
		}
		o.capacity = o.configured
		w.objects[name], w.names = o, append(w.names, name)
	}
	for i := range 1 + w.rng.IntN(3) {
		n := newNode(w, fmt.Sprintf("node-%c", 'a'+i))
		for name, o := range w.objects {
			n.configured[name] = o.configured
		}
		w.nodes = append(w.nodes, n)
	}
	for _, name := range w.names {
		for i, n := range w.nodes {
			if w.objects[name].shared || i == 0 {
				n.sees[name], w.objects[name].labels[n.name] = true, true
			}
		}
		w.objects[name].changed()
	}
	return w
}

func (w *world) run() {
	for _, n := range w.nodes {
		n.boot()
		w.after(w.upTo(2*time.Second), n.podArrives)
	}
	w.after(w.upTo(4*time.Second), w.faultHappens)
	if w.crowded {
		w.crowd()
	}
	w.after(time.Second, w.tick)
	w.after(busyTime, w.calmDown)
	for len(w.plan) > 0 && w.violation == "" {
		next := heap.Pop(&w.plan).(action)
		if next.at > busyTime+calmTime {
			return
		}
		w.now = next.at
		w.stats.Events++
		next.do()
		w.checkUses()
	}
}

// calmDown ends all Pods and all faults.
func (w *world) calmDown() {
	w.note("calm: all pods end, no further faults")
	w.calm = true
	for _, n := range w.nodes {
		for _, p := range slices.Clone(n.pods) {
			if p.running {
				n.end(p, false)
			}
		}
	}
}

// tick checks what depends on time.
func (w *world) tick() {
	w.after(time.Second, w.tick)
	for _, name := range w.names {
		o := w.objects[name]
		for number, owner := range o.usage {
			if n := w.node(owner.Node); n != nil && !owner.Free() {
				n.checkRelease(o, number, owner)
			}
		}
	}
	for _, n := range w.nodes {
		if n.m == nil {
			continue
		}
		n.checkWritten()
		n.countConflicts()
		if !n.stepped {
			continue
		}
		n.stepped = false
		for _, v := range n.m.Violations() {
			w.fail("%s: %s", n.name, v)
		}
	}
	for ref := range w.edited {
		if w.atRest(ref) {
			delete(w.edited, ref)
		}
	}
}

func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// checkUses checks that each slot is used by at most one container at a time, on the
// node and as the owner that the record names.
func (w *world) checkUses() {
	type holder struct {
		n *node
		u use
	}
	holders := map[slots.Ref]holder{}
	for _, n := range w.nodes {
		for _, p := range n.pods {
			if !p.live {
				continue
			}
			for _, u := range p.uses {
				o := w.objects[u.ref.Instance]
				if n.known[o.name].Version < o.edited { // the node cannot know yet
					w.excuse(u.ref)
				}
				w.checkRestored(n, u)
				owner := o.usage[u.ref.Slot]
				emptied := owner.Free() && w.restoring[u.ref]
				if !w.stats.Checks.judge(oneUser, !w.excused[u.ref] && !emptied) && w.excused[u.ref] {
					continue
				}
				h, found := holders[u.ref]
				switch {
				case found && h.n != n:
					w.fail("I2: %s is used on %s and on %s", u.ref, h.n.name, n.name)
				case found && h.u.owner != u.owner:
					w.fail("I2: %s is used as %q and as %q", u.ref, h.u.owner, u.owner)
				}
				holders[u.ref] = holder{n, u}
				if o.shared && owner != u.owner && !emptied {
					w.fail("I2: %s is used as %q, but the record names %q", u.ref, u.owner, owner)
				}
			}
		}
	}
	for ref := range w.excused {
		if !w.inUse(ref) {
			delete(w.excused, ref)
		}
	}
	for ref := range w.restoring {
		if !w.inUse(ref) {
			delete(w.restoring, ref)
		}
	}
}

// checkRestored follows a slot in use whose Instance was deleted, until its owner is
// written again.
func (w *world) checkRestored(n *node, u use) {
	o := w.objects[u.ref.Instance]
	known := o.exists && n.known[o.name].Version >= o.created
	switch {
	case known && o.usage[u.ref.Slot] == u.owner:
		delete(w.restoring, u.ref)
		return
	case !known:
		w.restoring[u.ref] = true
	}
	if w.restoring[u.ref] {
		w.checkRestorable(n, u.ref)
	}
}

// inUse reports whether a container has a slot, may get it, or its node thinks so.
func (w *world) inUse(ref slots.Ref) bool {
	for _, n := range w.nodes {
		if n.uses(ref) {
			return true
		}
	}
	return false
}
