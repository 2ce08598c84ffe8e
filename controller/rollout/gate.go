package rollout

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxUnavailable returns how many of a number of Instances may be unavailable at
// once. A percentage is rounded down, but never to 0.
func MaxUnavailable(setting intstr.IntOrString, instances int) (int, error) {
	limit, err := intstr.GetScaledValueFromIntOrPercent(&setting, instances, false)
	return max(limit, 1), err
}

// Gate holds one entry for each Configuration that limits its rollouts. It is
// safe for concurrent use. What its methods do takes the same time however many
// Instances a Configuration has, except for [Gate.SetInstances] and [Gate.Forget].
type Gate struct {
	wake func(types.NamespacedName)

	mu     sync.Mutex
	groups map[types.UID]*groupRollout
}

// NewGate returns a Gate that calls wake for each Instance that may try to pass
// again. wake must not block.
func NewGate(wake func(types.NamespacedName)) *Gate {
	return &Gate{wake: wake, groups: map[types.UID]*groupRollout{}}
}

// Len returns how many Configurations have an entry.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.groups)
}

// SetInstances records the Instances of a Configuration, as listed now, and the limit
// of how many may be unavailable. Before, only Instances that are unavailable anyway
// pass.
func (g *Gate) SetInstances(configuration types.UID, namespace string, instances []string, limit intstr.IntOrString) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	group.namespace, group.setting, group.complete = namespace, limit, true
	group.update(instances)
	g.open(group)
}

// Observe records whether an Instance is ready before it is changed. For a known
// Instance only "not ready" is recorded: a ready one may just have passed.
func (g *Gate) Observe(configuration types.UID, instance string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	if member := group.member(instance); !member.reported || !ready {
		group.report(member, ready)
		g.open(group)
	}
}

// TryAcquire reports whether an Instance may be changed now. If so, it counts as
// unavailable until [Gate.Report] records otherwise; if not, it is woken when it is
// its turn. An Instance that is unavailable anyway always passes.
func (g *Gate) TryAcquire(configuration types.UID, instance string, limit intstr.IntOrString) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	group.setting = limit // the list of members may be older than an edit
	member := group.member(instance)
	group.returnTurn(member)
	if member.available && group.free() < 1 {
		group.wait(member)
		return false
	}
	member.waiting = false
	group.report(member, false)
	g.open(group)
	return true
}

// Report records whether an Instance is ready after a pass that held nothing back.
func (g *Gate) Report(configuration types.UID, instance string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return // its rollouts are not limited
	}
	member := group.member(instance)
	member.waiting = false
	group.report(member, ready)
	g.open(group)
}

// Done records the end of a pass. If an Instance was woken and has not tried to
// pass, another is woken in its place.
func (g *Gate) Done(configuration types.UID, instance string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return
	}
	if member, found := group.members[instance]; found && member.woken {
		group.returnTurn(member)
		g.open(group)
	}
}

// RemoveInstance records that an Instance no longer exists, or is being deleted.
func (g *Gate) RemoveInstance(configuration types.UID, instance string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if group, found := g.groups[configuration]; found {
		group.remove(instance)
		g.open(group)
		if len(group.members) == 0 && !group.complete {
			delete(g.groups, configuration) // its Configuration was gone before its Instances
		}
	}
}

// Forget drops a Configuration that no longer exists, or no longer limits its
// rollouts. Waiting Instances are woken.
func (g *Gate) Forget(configuration types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return
	}
	delete(g.groups, configuration)
	for _, member := range group.members {
		if member.waiting {
			g.wake(types.NamespacedName{Namespace: group.namespace, Name: member.name})
		}
	}
}

// group returns the entry of a Configuration. The caller holds the lock.
func (g *Gate) group(configuration types.UID) *groupRollout {
	found := g.groups[configuration]
	if found == nil {
		found = &groupRollout{members: map[string]*memberState{}}
		g.groups[configuration] = found
	}
	return found
}

// open wakes as many waiting Instances as may pass. The caller holds the lock.
func (g *Gate) open(group *groupRollout) {
	for group.free() > 0 {
		next := group.next()
		if next == nil {
			return
		}
		g.wake(types.NamespacedName{Namespace: group.namespace, Name: next.name})
	}
}
