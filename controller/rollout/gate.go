package rollout

import (
	"slices"
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
// safe for concurrent use.
type Gate struct {
	wake func(types.NamespacedName)

	mu     sync.Mutex
	groups map[types.NamespacedName]*group
}

// group is what is known about a Configuration's Instances.
type group struct {
	members []string // as of the latest Pass
	limit   int      // as of the latest Pass
	// available holds whether an Instance was ready when last reported and has not
	// passed since. An Instance that is missing has not been reported.
	available map[string]bool
	waiting   map[string]bool
}

// NewGate returns a Gate that calls wake for each Instance that may try to pass
// again. wake must not block.
func NewGate(wake func(types.NamespacedName)) *Gate {
	return &Gate{wake: wake, groups: map[types.NamespacedName]*group{}}
}

// Know records whether an Instance is ready before it is changed. For a known
// Instance only "not ready" is recorded: a ready one may just have passed.
func (g *Gate) Know(configuration types.NamespacedName, instance string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	if _, known := group.available[instance]; !known || !ready {
		group.available[instance] = ready
		g.open(configuration, group)
	}
}

// Pass reports whether an Instance may be changed now. If so, it counts as
// unavailable until [Gate.Settle] records otherwise; if not, it is woken when its
// turn may have come. An Instance that is unavailable anyway always passes.
func (g *Gate) Pass(configuration types.NamespacedName, instance string, all []string, limit int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	group.members, group.limit = all, limit
	if group.available[instance] && group.free() < 1 {
		group.waiting[instance] = true
		return false
	}
	delete(group.waiting, instance)
	group.available[instance] = false
	return true
}

// Settle records whether an Instance is ready after a pass that held nothing back.
func (g *Gate) Settle(configuration types.NamespacedName, instance string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return // the group's rollouts are not limited
	}
	group.available[instance] = ready
	delete(group.waiting, instance)
	g.open(configuration, group)
}

// Gone records that an Instance no longer exists, whatever its Configuration.
func (g *Gate) Gone(instance types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for configuration, group := range g.groups {
		if configuration.Namespace != instance.Namespace {
			continue
		}
		if _, known := group.available[instance.Name]; known {
			delete(group.available, instance.Name)
			delete(group.waiting, instance.Name)
			group.members = slices.DeleteFunc(slices.Clone(group.members), func(name string) bool { return name == instance.Name })
			g.open(configuration, group)
		}
	}
}

// Forget drops a Configuration that no longer exists, or no longer limits its
// rollouts. Waiting Instances are woken.
func (g *Gate) Forget(configuration types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return
	}
	delete(g.groups, configuration)
	for name := range group.waiting {
		g.wake(types.NamespacedName{Namespace: configuration.Namespace, Name: name})
	}
}

// group returns the entry of a Configuration. The caller holds the lock.
func (g *Gate) group(configuration types.NamespacedName) *group {
	found := g.groups[configuration]
	if found == nil {
		found = &group{available: map[string]bool{}, waiting: map[string]bool{}}
		g.groups[configuration] = found
	}
	return found
}

// open wakes as many waiting Instances as may pass, in the order of their names.
// The caller holds the lock.
func (g *Gate) open(configuration types.NamespacedName, group *group) {
	free := group.free()
	for _, name := range group.members {
		if free < 1 {
			return
		}
		if group.waiting[name] {
			g.wake(types.NamespacedName{Namespace: configuration.Namespace, Name: name})
			free--
		}
	}
}

// free returns how many more Instances may become unavailable.
func (g *group) free() int {
	free := g.limit
	for _, name := range g.members {
		if !g.available[name] {
			free--
		}
	}
	return free
}
