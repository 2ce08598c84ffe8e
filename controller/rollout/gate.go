package rollout

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Most is how many of a number of Instances may be unavailable at once: a
// percentage is rounded down, but never to none.
func Most(maxUnavailable intstr.IntOrString, instances int) (int, error) {
	most, err := intstr.GetScaledValueFromIntOrPercent(&maxUnavailable, instances, false)
	return max(most, 1), err
}

// Gate holds one entry for each Configuration that limits its rollouts. It is
// safe for concurrent use.
type Gate struct {
	wake func(types.NamespacedName)

	mutex  sync.Mutex
	groups map[types.NamespacedName]*group
}

// group is what is known of a Configuration's Instances.
type group struct {
	members []string // as of the latest Pass
	most    int      // as of the latest Pass
	// available Instances were ready when they were last looked at, and have not
	// been let through since. Those missing have not been looked at.
	available map[string]bool
	waiting   map[string]bool
}

// NewGate returns a Gate that calls wake for each Instance that may try again.
// wake must not block.
func NewGate(wake func(types.NamespacedName)) *Gate {
	return &Gate{wake: wake, groups: map[types.NamespacedName]*group{}}
}

// Know tells how an Instance is before anything is changed. That it is ready says
// nothing new of one that is known: it may have been let through.
func (g *Gate) Know(configuration types.NamespacedName, instance string, ready bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	group := g.group(configuration)
	if _, known := group.available[instance]; !known || !ready {
		group.available[instance] = ready
		g.open(configuration, group)
	}
}

// Pass asks whether an Instance may be changed now. If it may, it counts as
// unavailable until [Gate.Settle] says otherwise; if not, it is woken when its
// turn may have come. An Instance that is unavailable anyway always may.
func (g *Gate) Pass(configuration types.NamespacedName, instance string, all []string, most int) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	group := g.group(configuration)
	group.members, group.most = all, most
	if group.available[instance] && group.free() < 1 {
		group.waiting[instance] = true
		return false
	}
	delete(group.waiting, instance)
	group.available[instance] = false
	return true
}

// Settle tells how an Instance is after a pass in which nothing had to wait.
func (g *Gate) Settle(configuration types.NamespacedName, instance string, ready bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return // no rollout of this group was ever limited
	}
	group.available[instance] = ready
	delete(group.waiting, instance)
	g.open(configuration, group)
}

// Gone tells that an Instance, of whichever Configuration, does not exist any
// more.
func (g *Gate) Gone(instance types.NamespacedName) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
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

// Forget drops a Configuration that has gone, or limits its rollouts no longer.
// Who waited is woken.
func (g *Gate) Forget(configuration types.NamespacedName) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return
	}
	delete(g.groups, configuration)
	for name := range group.waiting {
		g.wake(types.NamespacedName{Namespace: configuration.Namespace, Name: name})
	}
}

// group returns a Configuration's entry. The caller holds the lock.
func (g *Gate) group(configuration types.NamespacedName) *group {
	found := g.groups[configuration]
	if found == nil {
		found = &group{available: map[string]bool{}, waiting: map[string]bool{}}
		g.groups[configuration] = found
	}
	return found
}

// open wakes as many as may pass, in the order of their names. The caller holds
// the lock.
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

// free is how many more may become unavailable.
func (g *group) free() int {
	free := g.most
	for _, name := range g.members {
		if !g.available[name] {
			free--
		}
	}
	return free
}
