package slots_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

const device = "cam"

// world is the record of one device in the API server, and the nodes that share it.
type world struct {
	rng        *rand.Rand
	now        time.Duration
	version    uint64
	usage      map[int]v0.Owner
	shared     bool
	capacity   int
	nodes      []*simNode
	nextCall   slots.Call
	violations []string
	log        []string
}

// simNode is a kubelet, its pods and the machine of its agent.
type simNode struct {
	w           *world
	name        string
	m           *slots.Machine
	list        []slots.Health
	named       map[int]time.Duration
	pods        []*simPod
	calls       map[slots.Call]*simPod
	patches     []*patch // sent, not answered
	late        []*patch // abandoned by the agent; may still reach the API server
	watch       []slots.Event
	observation *slots.PodsObserved
}

type simPod struct {
	slots   []int
	running bool
	since   time.Duration
}

// patch carries, for a release, the version it was made for.
type patch struct {
	release bool
	slots   []int
	version uint64
	tries   int
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0)), usage: map[int]v0.Owner{}, version: 1}
	w.shared = w.rng.IntN(4) > 0
	w.capacity = 1 + w.rng.IntN(3)
	count := 1
	if w.shared {
		count = 2 + w.rng.IntN(2)
	}
	for i := range count {
		n := &simNode{w: w, name: fmt.Sprintf("node-%c", 'a'+i), named: map[int]time.Duration{}, calls: map[slots.Call]*simPod{}}
		w.nodes = append(w.nodes, n)
		n.boot()
	}
	return w
}

// tail returns the last events, without most of those of settle.
func (w *world) tail(lines int) []string {
	end := len(w.log)
	if i := slices.Index(w.log, "all pods end, everything arrives"); i >= 0 {
		end = min(end, i+20)
	}
	return w.log[max(0, end-lines):end]
}

func (w *world) fail(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *world) run(steps int) {
	for range steps {
		w.now += time.Duration(w.rng.IntN(1500)) * time.Millisecond
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		switch w.rng.IntN(14) {
		case 0, 1, 2:
			n.startPod()
		case 3:
			n.endPod()
		case 4, 5, 6:
			n.answerPatch()
		case 7, 8:
			n.deliver()
		case 9:
			n.observe()
		case 10, 11:
			n.reportObservation()
		case 12:
			n.injectFault()
		case 13:
			n.step(slots.Ticked{Now: w.now})
		}
		w.check()
		if len(w.violations) > 0 {
			return
		}
	}
	w.log = append(w.log, "all pods end, everything arrives")
	w.settle()
}

// settle ends all pods and delivers everything: no slot may stay taken (I7).
func (w *world) settle() {
	for _, n := range w.nodes {
		for len(n.pods) > 0 {
			n.endPod()
		}
	}
	for range 40 {
		w.now += 5 * time.Second
		for _, n := range w.nodes {
			n.step(slots.Ticked{Now: w.now})
			for len(n.late) > 0 {
				n.land(0)
			}
			for len(n.patches) > 0 && len(w.violations) == 0 {
				n.execute(n.patches[0])
			}
			for len(n.watch) > 0 {
				n.deliver()
			}
			n.observe()
			n.reportObservation()
			w.check()
		}
		if len(w.violations) > 0 {
			return
		}
	}
	for slot, owner := range w.usage {
		if !owner.Free() {
			w.fail("I7: slot %d is still owned by %s although no container has it", slot, owner)
		}
	}
	for _, n := range w.nodes {
		if len(n.calls) > 0 {
			w.fail("I8: %s left %d calls unanswered", n.name, len(n.calls))
		}
	}
}

// check checks the invariants across all nodes.
func (w *world) check() {
	holders := map[int]string{}
	for _, n := range w.nodes {
		for _, p := range n.pods {
			for _, s := range p.slots {
				if !p.running {
					continue
				}
				if other := holders[s]; other != "" && other != n.name {
					w.fail("I2: slot %d is used on %s and on %s", s, other, n.name)
				}
				holders[s] = n.name
				if owner := w.usage[s]; w.shared && owner.Node != n.name {
					w.fail("I2: slot %d is used on %s, but the record names %q", s, n.name, owner)
				}
			}
		}
		for _, v := range slots.Check(n.m.State()) {
			w.fail("%s: %s", n.name, v)
		}
	}
}

// write changes the record if every slot matches its test (I1).
func (w *world) write(node string, p *patch) bool {
	if p.release && p.version != w.version {
		return false
	}
	to := v0.Owner{Node: node}
	if p.release {
		to = v0.Owner{}
	}
	change := false
	for _, s := range p.slots {
		switch owner := w.usage[s]; {
		case owner == to:
		case p.release && owner != v0.Owner{Node: node}:
			return false
		case !p.release && !owner.Free():
			return false
		default:
			change = true
		}
	}
	if !change {
		return true
	}
	for _, s := range p.slots {
		w.usage[s] = to
	}
	w.version++
	for _, n := range w.nodes {
		n.watch = append(n.watch, slots.InstanceRecorded{Instance: device, Record: *w.record()})
	}
	return true
}

func (w *world) record() *slots.Record {
	usage := map[int]v0.Owner{}
	maps.Copy(usage, w.usage)
	return &slots.Record{Version: w.version, Usage: usage}
}

// boot starts the agent. Its containers keep running.
func (n *simNode) boot() {
	n.m = slots.New(n.name)
	n.list, n.watch, n.observation = nil, nil, nil
	n.step(slots.Ticked{Now: n.w.now})
	events := []slots.Event{
		slots.DevicePublished{Instance: device, Shared: n.w.shared, Capacity: n.w.capacity, Online: true},
		slots.InstanceRecorded{Instance: device, Record: *n.w.record()},
	}
	if n.w.rng.IntN(2) == 0 {
		slices.Reverse(events)
	}
	for _, e := range events {
		n.step(e)
	}
}

func (n *simNode) step(e slots.Event) {
	if _, tick := e.(slots.Ticked); !tick {
		n.step(slots.Ticked{Now: n.w.now})
	}
	n.w.log = append(n.w.log, fmt.Sprintf("%8s %s < %T%+v", n.w.now, n.name, e, e))
	for _, command := range n.m.Step(e) {
		n.w.log = append(n.w.log, fmt.Sprintf("%8s %s > %s", n.w.now, n.name, command))
		n.do(command)
	}
}

func (n *simNode) do(command slots.Command) {
	switch c := command.(type) {
	case slots.Answer:
		p := n.calls[c.Call]
		if p == nil {
			n.w.fail("I8: call %d answered twice", c.Call)
			return
		}
		delete(n.calls, c.Call)
		if c.Err != nil {
			if errors.Is(c.Err, slots.ErrTaken) && !slices.ContainsFunc(p.slots, func(s int) bool {
				owner := n.w.usage[s]
				return owner != v0.Owner{Node: n.name}
			}) {
				n.w.fail("I4: %s owns %v but was refused", n.name, p.slots)
			}
			n.pods = slices.DeleteFunc(n.pods, func(q *simPod) bool { return q == p })
			return
		}
		p.running, p.since = true, n.w.now
	case slots.Claim:
		n.patches = append(n.patches, &patch{slots: c.Slots})
	case slots.Release:
		n.patches = append(n.patches, &patch{release: true, slots: c.Slots, version: n.w.version})
	case slots.Advertise:
		for _, h := range n.list {
			dropped := !slices.ContainsFunc(c.List, func(o slots.Health) bool { return o.Slot == h.Slot })
			if dropped && n.w.now-n.named[h.Slot] < slots.Quiet {
				n.w.fail("I6: slot %d left the list of %s %s after a call", h.Slot, n.name, n.w.now-n.named[h.Slot])
			}
		}
		n.list = c.List
	case slots.Report:
		n.w.fail("contradiction on %s: %s", n.name, c)
	}
}

// startPod lets the kubelet admit a pod with one or two containers that use the same
// slots, as an init container and an app container do.
func (n *simNode) startPod() {
	var free []int
	for _, h := range n.list {
		used := slices.ContainsFunc(n.pods, func(p *simPod) bool { return slices.Contains(p.slots, h.Slot) })
		if h.Healthy && !used {
			free = append(free, h.Slot)
		}
	}
	if len(free) == 0 {
		return
	}
	n.w.rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	p := &simPod{slots: free[:1+n.w.rng.IntN(len(free))]}
	n.pods = append(n.pods, p)
	for range 1 + n.w.rng.IntN(2) {
		if !slices.Contains(n.pods, p) {
			return
		}
		n.w.nextCall++
		n.calls[n.w.nextCall] = p
		for _, s := range p.slots {
			n.named[s] = n.w.now
		}
		n.step(slots.AllocateRequested{Call: n.w.nextCall, Instance: device, Slots: p.slots})
	}
}

func (n *simNode) endPod() {
	if len(n.pods) == 0 {
		return
	}
	i := n.w.rng.IntN(len(n.pods))
	p := n.pods[i]
	for call, q := range n.calls {
		if p == q {
			n.step(slots.CallExpired{Call: call})
			delete(n.calls, call)
		}
	}
	n.pods = slices.DeleteFunc(n.pods, func(q *simPod) bool { return p == q })
}

// observe asks the kubelet which slots its containers have. A slot that was assigned
// just before may be missing.
func (n *simNode) observe() {
	e := &slots.PodsObserved{Since: n.m.Generation(), Began: n.w.now}
	for s := range 4 {
		ref := slots.Ref{Instance: device, Slot: s}
		used := slices.ContainsFunc(n.pods, func(p *simPod) bool {
			booked := n.w.now-p.since >= slots.SettleTime || n.w.rng.IntN(2) == 0
			return slices.Contains(p.slots, s) && p.running && booked
		})
		switch {
		case used:
			e.Held = append(e.Held, ref)
		case slices.Contains(n.m.Held(), ref):
			e.Ended = append(e.Ended, ref)
		}
	}
	n.observation = e
}

func (n *simNode) reportObservation() {
	if n.observation != nil {
		e := *n.observation
		n.observation = nil
		n.step(e)
	}
}

func (n *simNode) deliver() {
	if len(n.watch) > 0 {
		e := n.watch[0]
		n.watch = n.watch[1:]
		n.step(e)
	}
}

func (n *simNode) answerPatch() {
	if len(n.patches) == 0 {
		if len(n.late) > 0 && n.w.rng.IntN(3) == 0 {
			n.land(n.w.rng.IntN(len(n.late)))
		}
		return
	}
	p := n.patches[n.w.rng.IntN(len(n.patches))]
	switch n.w.rng.IntN(6) {
	case 0: // no answer; it may be applied at any later time
		n.late = append(n.late, p)
		n.answer(p, slots.Unknown, nil)
	case 1: // the answer is lost, and the record is read before the patch is applied
		n.late = append(n.late, p)
		n.answer(p, slots.Unknown, n.w.record())
	case 2: // applied, but the answer is lost and the read fails
		n.w.write(n.name, p)
		n.answer(p, slots.Unknown, nil)
	case 3: // refused for another reason
		n.answer(p, slots.Refused, nil)
	default:
		n.execute(p)
	}
}

func (n *simNode) execute(p *patch) {
	p.tries++
	switch {
	case n.w.write(n.name, p):
		n.answer(p, slots.Written, n.w.record())
	case p.release && p.version != n.w.version && p.tries < 5:
		p.version = n.w.version // read, then retried
	default:
		n.answer(p, slots.Refused, n.w.record())
	}
}

func (n *simNode) answer(p *patch, outcome slots.Outcome, record *slots.Record) {
	n.patches = slices.DeleteFunc(n.patches, func(q *patch) bool { return p == q })
	if p.release {
		n.step(slots.ReleaseSettled{Instance: device, Slots: p.slots, Outcome: outcome, Record: record, Tried: p.version})
		return
	}
	n.step(slots.ClaimSettled{Instance: device, Slots: p.slots, Outcome: outcome, Record: record})
}

func (n *simNode) land(i int) {
	n.w.write(n.name, n.late[i])
	n.late = slices.Delete(n.late, i, i+1)
}

// injectFault restarts the agent, edits the capacity or flaps the device.
func (n *simNode) injectFault() {
	switch n.w.rng.IntN(4) {
	case 0:
		for _, p := range n.patches { // in flight when the agent died
			if n.w.rng.IntN(2) == 0 {
				n.w.write(n.name, p)
			}
		}
		for len(n.late) > 0 {
			n.land(0)
		}
		n.patches = nil
		for _, p := range n.calls { // the kubelet sees an error
			n.pods = slices.DeleteFunc(n.pods, func(q *simPod) bool { return p == q })
		}
		clear(n.calls)
		clear(n.named)
		n.boot()
	case 1:
		n.w.capacity = 1 + n.w.rng.IntN(3)
		for _, o := range n.w.nodes {
			o.step(slots.DevicePublished{Instance: device, Shared: n.w.shared, Capacity: n.w.capacity, Online: true})
		}
	case 2:
		n.step(slots.DevicePublished{Instance: device, Shared: n.w.shared, Capacity: n.w.capacity, Online: false})
	case 3:
		if n.w.rng.IntN(4) == 0 {
			n.step(slots.DeviceWithdrawn{Instance: device})
		} else {
			n.step(slots.DevicePublished{Instance: device, Shared: n.w.shared, Capacity: n.w.capacity, Online: true})
		}
	}
}
