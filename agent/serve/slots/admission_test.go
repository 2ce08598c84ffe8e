package slots_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// podArrives lets the kubelet admit a Pod, one at a time.
func (n *node) podArrives() {
	if n.w.calm {
		return
	}
	n.w.after(n.w.upTo(3*time.Second), n.podArrives)
	if n.admitting != nil || n.m == nil {
		return
	}
	resources := slices.SortedFunc(maps.Keys(n.lists), func(a, b slots.Resource) int { return len(a.Name) - len(b.Name) })
	slices.SortFunc(resources, func(a, b slots.Resource) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	if len(resources) == 0 {
		return
	}
	p := &pod{containers: 1 + n.w.rng.IntN(2)}
	for range 1 + n.w.rng.IntN(2) {
		r := resources[n.w.rng.IntN(len(resources))]
		if !slices.ContainsFunc(p.requests, func(o request) bool { return o.resource == r }) {
			p.requests = append(p.requests, request{resource: r, count: 1 + n.w.rng.IntN(2)})
		}
	}
	n.admit(p)
}

// admit lets the kubelet admit a Pod, unless it is admitting one.
func (n *node) admit(p *pod) {
	if n.admitting != nil || n.m == nil {
		return
	}
	for _, r := range p.requests { // the scheduler's condition
		if len(n.available(r.resource)) < r.count {
			return
		}
	}
	n.admitting = p
	n.pods = append(n.pods, p)
	n.allocate(&step{pod: p})
}

// available returns the healthy IDs of a resource that no Pod has.
func (n *node) available(r slots.Resource) []int {
	var ids []int
	for _, h := range n.lists[r] {
		if h.Healthy && !slices.ContainsFunc(n.pods, func(p *pod) bool { return !p.ended && p.has(r, h.ID) }) {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

func (p *pod) has(r slots.Resource, id int) bool {
	return slices.ContainsFunc(p.requests, func(o request) bool { return o.resource == r && slices.Contains(o.ids, id) })
}

// allocate chooses IDs for a container and calls the agent. The kubelet may stall in
// between.
func (n *node) allocate(s *step) {
	r := &s.pod.requests[s.request]
	if s.container == 0 {
		ids := n.available(r.resource)
		if len(ids) < r.count || n.m == nil {
			n.reject(s.pod)
			return
		}
		n.w.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		r.ids = n.prefer(r, ids)
		n.nameIDs(r)
	}
	delay := n.w.upTo(20 * time.Millisecond)
	if n.w.faults[stalls] && n.w.chance(5) {
		delay = n.w.stall(5 * time.Second)
	}
	delay = max(delay, n.w.busyUntil-n.w.now)
	if n.w.faults[crashes] && !n.w.calm && !s.pod.live && n.w.oneIn(20) {
		n.crashAfterChoice(r)
	}
	n.w.after(delay, func() { n.call(s) })
}

// crashAfterChoice ends the agent between the kubelet's choice of IDs and its call. A user
// reduces the capacity meanwhile, or a device goes offline, so that the next agent may not
// list the IDs.
func (n *node) crashAfterChoice(r *request) {
	n.crash()
	if !r.resource.Group {
		n.w.resize(n.w.objects[r.resource.Name], 1)
		return
	}
	for _, name := range n.w.names[1:] {
		n.up[name] = false
		n.w.after(10*time.Second, func() {
			n.up[name] = true
			n.publish(name)
		})
	}
}

// stall returns how long the kubelet stalls: up to a limit or, sometimes, so long that an
// ID may leave the list meanwhile.
func (w *world) stall(limit time.Duration) time.Duration {
	d := w.upTo(limit)
	if w.oneIn(4) {
		d = w.upTo(40 * time.Second)
	}
	return d
}

// prefer returns the IDs that the agent prefers, or any.
func (n *node) prefer(r *request, ids []int) []int {
	chosen := slices.Clone(ids[:r.count])
	if n.w.chance(30) {
		return chosen
	}
	n.step(slots.Ticked{Now: n.w.now})
	if n.m == nil {
		return chosen
	}
	preferred := n.m.Prefer(slots.Preference{Resource: r.resource, Available: ids, Size: r.count})
	n.w.note("%s prefers %v of %s", n.name, preferred, r.resource.Name)
	if len(preferred) != r.count {
		n.w.fail("%s prefers %v of %v, but %d are needed", n.name, preferred, ids, r.count)
		return chosen
	}
	return preferred
}

// nameIDs records that a call names IDs.
func (n *node) nameIDs(r *request) {
	if n.named[r.resource] == nil {
		n.named[r.resource] = map[int]time.Duration{}
	}
	for _, id := range r.ids {
		n.named[r.resource][id] = n.w.now
	}
}

func (n *node) call(s *step) {
	r := &s.pod.requests[s.request]
	switch {
	case n.admitting != s.pod:
		return
	case n.w.now < s.pod.stalled:
		n.w.after(s.pod.stalled-n.w.now, func() { n.call(s) })
		return
	case n.m == nil || n.listedBy[r.resource] != n.epoch: // nobody listens
		n.reject(s.pod)
		return
	}
	if s.unlisted = !n.shows(r); !s.unlisted { // the service would refuse it, too
		n.nameIDs(r)
	}
	n.w.nextCall++
	call, epoch := n.w.nextCall, n.epoch
	s.sent, s.moves = n.w.now, n.w.now-r.answered >= slots.SettleTime && !(n.same(r) && n.current(r))
	n.calls[call], s.owned = s, n.owns(r)
	for _, id := range r.ids {
		n.namedAt[useOf(r.resource, id)] = n.w.now
		n.delayID(r.resource, id)
	}
	n.w.after(deadline, func() {
		if epoch == n.epoch && n.calls[call] != nil {
			n.step(slots.CallExpired{Call: call})
			if epoch == n.epoch && n.calls[call] != nil {
				n.w.fail("I8: %s did not answer call %d in time", n.name, call)
			}
		}
	})
	n.step(slots.AllocateRequested{Call: call, Resource: r.resource, IDs: slices.Clone(r.ids)})
}

// shows reports whether the kubelet's list has all IDs of a request.
func (n *node) shows(r *request) bool {
	return !slices.ContainsFunc(r.ids, func(id int) bool {
		return !slices.ContainsFunc(n.lists[r.resource], func(h slots.Health) bool { return h.ID == id })
	})
}

// reject ends an admission: the kubelet frees the IDs at once.
func (n *node) reject(p *pod) {
	if n.admitting == p {
		n.admitting = nil
	}
	n.remove(p)
	n.delayUses(p)
}

// remove forgets a Pod that has no container any more, and that the kubelet has forgotten.
func (n *node) remove(p *pod) {
	n.pods = slices.DeleteFunc(n.pods, func(o *pod) bool { return o == p })
	p.gone = n.w.now
	for _, u := range p.uses {
		n.used[u.ref] = n.w.now
	}
	n.unnoticed = append(n.unnoticed, p)
}

// answered handles the answer to a call.
func (n *node) answered(a slots.Answer) {
	s := n.calls[a.Call]
	if s == nil {
		n.w.fail("I8: %s answered call %d, which is not waiting", n.name, a.Call)
		return
	}
	delete(n.calls, a.Call)
	r := &s.pod.requests[s.request]
	n.checkAnswer(s, a)
	if a.Err != nil {
		n.w.stats.Refused++
		n.reject(s.pod)
		if errors.Is(a.Err, slots.ErrTaken) {
			n.observeSoon()
		}
		return
	}
	n.w.stats.Granted++
	if r.resource.Group && len(a.Slots) > 1 {
		n.w.stats.Several++
	}
	if !n.shows(r) { // pkg/kubelet/cm/devicemanager: allocateContainerResources
		n.w.fail("I6: the kubelet of %s crashes: an ID of %v is not in its list of %s", n.name, r.ids, r.resource.Name)
	}
	for i, ref := range a.Slots {
		n.given[ref] = true
		owner := v0.Owner{Node: n.name}
		if r.resource.Group {
			owner.VirtualID = strconv.Itoa(r.ids[i])
			n.w.stats.Groups++
		}
		if u := (use{ref, owner}); !slices.Contains(s.pod.uses, u) {
			s.pod.uses = append(s.pod.uses, u)
		}
	}
	if !s.pod.live {
		s.pod.live, s.pod.answered = true, n.w.now
	}
	next := *s
	if next.request++; next.request == len(s.pod.requests) {
		next.request, next.container = 0, s.container+1
	}
	if next.container < s.pod.containers {
		n.allocate(&next)
		return
	}
	n.admitted(s.pod)
}

// admitted starts a Pod's containers. The kubelet needs a moment until it lists the IDs.
func (n *node) admitted(p *pod) {
	n.admitting = nil
	p.running = true
	delay := n.w.upTo(time.Second)
	if n.w.faults[stalls] && n.w.chance(20) {
		delay = n.w.stall(6 * time.Second)
	}
	n.w.after(delay, func() { p.booked = true })
	n.w.after(delay+time.Duration(n.w.lives)*n.w.upTo(10*time.Second), func() {
		if !p.ended && p.live {
			n.end(p, n.w.faults[forced] && n.w.chance(30))
		}
	})
	if n.w.calm {
		n.end(p, false)
	}
}
