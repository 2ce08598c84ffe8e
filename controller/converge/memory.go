package converge

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
)

// memory is what this process knows about the objects of each parent that the
// parent's inventory does not say, or does not prove.
type memory struct {
	mu       sync.Mutex
	byParent map[types.UID]*remembered
}

// remembered is the memory of one parent.
type remembered struct {
	// applied are the UIDs of the objects that were applied.
	applied []types.UID
	// unreported are the entries that were applied in passes without a report.
	unreported []v0.ResourceStatus
	// changed counts, for each object, the passes in a row in which it was not the
	// one that was planned for.
	changed map[inventory.Ref]int
}

func newMemory() *memory { return &memory{byParent: map[types.UID]*remembered{}} }

// of returns the memory of a parent. The caller holds the lock.
func (m *memory) of(parent types.UID) *remembered {
	entry := m.byParent[parent]
	if entry == nil {
		entry = &remembered{}
		m.byParent[parent] = entry
	}
	return entry
}

// hasApplied reports whether an object was applied for a parent.
func (m *memory) hasApplied(parent, object types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := m.byParent[parent]
	return entry != nil && slices.Contains(entry.applied, object)
}

// apply records that an object was applied for a parent. former is the UID in the
// recorded entry: another one is that of an object that was deleted.
func (m *memory) apply(parent types.UID, entry v0.ResourceStatus, former types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(parent)
	delete(known.changed, inventory.RefOf(entry))
	uid := types.UID(entry.UID)
	if former != uid {
		known.drop(former)
	}
	if !slices.Contains(known.applied, uid) {
		known.applied = append(known.applied, uid)
	}
}

// deleted records that an object of a parent was deleted.
func (m *memory) deleted(parent, object types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if entry := m.byParent[parent]; entry != nil {
		entry.drop(object)
	}
}

// drop forgets an object. The caller holds the lock.
func (r *remembered) drop(object types.UID) {
	r.applied = slices.DeleteFunc(r.applied, func(uid types.UID) bool { return uid == object })
}

// changedAgain records that an object was not the one that was planned for, and
// returns in how many passes in a row.
func (m *memory) changedAgain(parent types.UID, object inventory.Ref) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := m.of(parent)
	if entry.changed == nil {
		entry.changed = map[inventory.Ref]int{}
	}
	entry.changed[object]++
	return entry.changed[object]
}

// report records the inventory after a pass. If the pass is not reported, the next
// one starts from this inventory.
func (m *memory) report(parent types.UID, resources []v0.ResourceStatus, reported bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if reported {
		if entry := m.byParent[parent]; entry != nil {
			entry.unreported = nil
		}
		return
	}
	m.of(parent).unreported = slices.DeleteFunc(slices.Clone(resources), func(entry v0.ResourceStatus) bool { return entry.UID == "" })
}

// complete returns a recorded inventory with the entries that were not reported.
func (m *memory) complete(parent types.UID, recorded []v0.ResourceStatus) []v0.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := m.byParent[parent]
	if entry == nil || len(entry.unreported) == 0 {
		return recorded
	}
	all := inventory.Index(recorded)
	for _, unreported := range entry.unreported {
		all[inventory.RefOf(unreported)] = unreported
	}
	completed := make([]v0.ResourceStatus, 0, len(all))
	for _, resource := range all {
		completed = append(completed, resource)
	}
	inventory.Sort(completed)
	return completed
}

func (m *memory) forget(parent types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byParent, parent)
}
