package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Changes of many Instances are gathered into one reconcile of their group. It
// takes time for each Instance, so large groups are reconciled less often.
const (
	groupDelay            = 100 * time.Millisecond
	groupDelayPerInstance = 200 * time.Microsecond
)

// groupDelays remembers how many Instances each group had in its last reconcile.
type groupDelays struct {
	mu        sync.Mutex
	instances map[types.NamespacedName]int
}

func newGroupDelays() *groupDelays {
	return &groupDelays{instances: map[types.NamespacedName]int{}}
}

func (g *groupDelays) set(group types.NamespacedName, instances int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.instances[group] = instances
}

func (g *groupDelays) forget(group types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.instances, group)
}

// delay returns how long to gather changes of a group's Instances.
func (g *groupDelays) delay(group types.NamespacedName) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return groupDelay + time.Duration(g.instances[group])*groupDelayPerInstance
}
