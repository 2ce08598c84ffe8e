package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// News of many Instances is gathered into one look at their group. A look costs
// time for each Instance, so large groups are looked at less often.
const (
	groupDelay            = 100 * time.Millisecond
	groupDelayPerInstance = 200 * time.Microsecond
)

// groupSizes remembers how many Instances each group had when it was last looked
// at.
type groupSizes struct {
	mutex sync.Mutex
	count map[types.NamespacedName]int
}

func newGroupSizes() *groupSizes { return &groupSizes{count: map[types.NamespacedName]int{}} }

func (g *groupSizes) set(group types.NamespacedName, instances int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.count[group] = instances
}

func (g *groupSizes) forget(group types.NamespacedName) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	delete(g.count, group)
}

// delay is how long to gather news of a group's Instances.
func (g *groupSizes) delay(group types.NamespacedName) time.Duration {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return groupDelay + time.Duration(g.count[group])*groupDelayPerInstance
}
