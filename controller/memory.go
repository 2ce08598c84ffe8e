package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/metadata"
	"akri.sh/akri/templating"
)

// memory is what is kept in addition to the caches: a record of each parent, and what the
// packages below know about parents.
type memory struct {
	templates *templates.Cache
	converger *converge.Converger
	informers *informers.Informers
	gate      *rollout.Gate
	queues    parentQueues

	mu      sync.Mutex
	records map[ownership.Parent]*record // by the parent without its UID
}

// record is everything that is remembered about one parent. It belongs to a UID: a parent
// that is created again under the same name starts without state.
type record struct {
	uid types.UID
	// configuration is the UID of the Configuration that the parent belongs to or is, and
	// account the ServiceAccount that acts for it.
	configuration types.UID
	account       types.NamespacedName
	// orphans reports that the parent is being deleted without its objects.
	orphans bool
	// history is what the converger knows about its objects.
	history *converge.History

	// expected is the version of the last write of the status: an older parent in the cache
	// has an older status, from which the next pass would apply and write again.
	expected string
	written  time.Time // zero if there was no write
	// judged reports that the conditions changed with that write.
	judged bool
	// held is a status that was not written yet, or nil: one that was computed, first at since,
	// or the stored one with the inventory of a pass that computed none.
	held  *status
	since time.Time // zero if none was computed

	// failures counts the passes in a row with problems that may heal.
	failures int
	// unanswered is the time of the first pass without an answer since the last one with.
	unanswered time.Time

	// generation of the Configuration is the one that the conditions of an Instance are
	// about; 0 if that is not known.
	generation int64
	absence    absence

	// members is how many Instances a Configuration had in its last pass, and kinds are
	// those of their objects: an Instance may have lost its inventory.
	members int
	kinds   []schema.GroupVersionKind
}

func newMemory(converger *converge.Converger, compiled *templates.Cache, queues parentQueues) *memory {
	return &memory{
		templates: compiled,
		converger: converger,
		informers: converger.Informers,
		gate: rollout.NewGate(func(instance types.NamespacedName) {
			queues.add(ownership.Parent{Level: templating.InstanceLevel, NamespacedName: instance})
		}),
		queues:  queues,
		records: map[ownership.Parent]*record{},
	}
}

// observe records that a parent exists, and its Configuration, which may be nil. If an
// earlier parent had its name, that one is forgotten, and its objects are deleted;
// replaced reports that there were some.
func (m *memory) observe(ctx context.Context, parent ownership.Parent, configuration *v0.Configuration) (replaced bool) {
	m.mu.Lock()
	former := m.records[parent.ByName()]
	now := former
	if former == nil || former.uid != parent.UID {
		now = &record{uid: parent.UID, history: &converge.History{}}
		m.records[parent.ByName()] = now
	}
	if configuration != nil {
		now.configuration, now.account = configuration.UID, account(configuration)
	}
	m.mu.Unlock()
	return former != nil && former != now && m.discard(ctx, parent.ByName(), former) > 0
}

// seeDeletion records whether a parent is being deleted without its objects, as its
// finalizers say. Garbage collection takes the owner reference off the objects that it
// knows of, and then removes that finalizer, perhaps before the next pass.
func (m *memory) seeDeletion(parent ownership.Parent, finalizers []string) {
	if !slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.records[parent.ByName()]
	if known == nil {
		known = &record{uid: parent.UID, history: &converge.History{}}
		m.records[parent.ByName()] = known
	}
	if known.uid == parent.UID { // otherwise nothing has been created for this one yet
		known.orphans = true
	}
}

// forget drops what is remembered about a parent that no longer exists, given by
// its name, and deletes its objects.
func (m *memory) forget(ctx context.Context, parent ownership.Parent) {
	m.mu.Lock()
	former := cmp.Or(m.records[parent], &record{})
	delete(m.records, parent)
	m.mu.Unlock()
	m.discard(ctx, parent, former)
}

// discard forgets a parent whose record is no longer in use, and returns how many of its
// objects it has deleted.
func (m *memory) discard(ctx context.Context, parent ownership.Parent, former *record) int {
	m.informers.Await(parent, nil)
	parent.UID = former.uid
	deleted := 0
	if !former.orphans {
		deleted = m.converger.Collect(ctx, parent, former.account)
	}
	if parent.Level == templating.InstanceLevel {
		m.gate.RemoveInstance(former.configuration, parent.Name)
		return deleted
	}
	m.templates.Forget(parent.NamespacedName)
	m.gate.Forget(former.uid)
	m.informers.SetResources(parent.NamespacedName, nil)
	return deleted
}

// get returns the record of a parent as it is now; empty if there is none. If the parent has
// no UID, it is the record of its name.
func (m *memory) get(parent ownership.Parent) record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.records[parent.ByName()]; known != nil && (parent.UID == "" || parent.UID == known.uid) {
		return *known
	}
	return record{}
}

// update changes the record of a parent. A parent that was forgotten meanwhile has none.
func (m *memory) update(parent ownership.Parent, change func(*record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.records[parent.ByName()]; known != nil && parent.UID == known.uid {
		change(known)
	}
}

// awaits reports whether the cache, which has a version of the parent, does not have the
// status yet that this process wrote last.
func (r *record) awaits(version string) bool { return metadata.IsNewer(r.expected, version) }

// keep keeps the inventory of a pass that writes no status, so that the next pass starts from
// it. It leaves out what could not be created.
func (m *memory) keep(p *pass, applied []v0.ResourceStatus) {
	before := inventory.Index(p.base.Resources)
	applied = slices.DeleteFunc(applied, func(entry v0.ResourceStatus) bool {
		return entry.UID == "" && before[inventory.RefOf(entry)].Name == ""
	})
	if len(applied) > 0 && !slices.Equal(applied, p.base.Resources) {
		held := status{Conditions: p.stored.Conditions, Resources: applied, Fields: p.base.Fields}
		m.update(p.parent, func(known *record) { known.held = &held })
	}
}

// reported records that the API server has the status that was computed last.
func (r *record) reported() { r.held, r.since = nil, time.Time{} }

// hold keeps a computed status that differs from the stored one, and returns how long it may
// wait before it is written, 0 for not at all. It is kept until it is written: the write may fail.
func (r *record) hold(held status, pace pace, now time.Time) time.Duration {
	if r.since.IsZero() {
		r.since = now
	}
	r.held = &held
	return max(r.since.Add(pace.computed).Sub(now), r.written.Add(pace.written).Sub(now), 0)
}

// groupDelay is how long changes of a group's Instances are gathered into one reconcile of
// the group. That takes time for each Instance, so large groups are reconciled less often.
const (
	groupDelay            = 100 * time.Millisecond
	groupDelayPerInstance = 200 * time.Microsecond
)

// delay returns how long to gather changes of a group's Instances.
func (m *memory) delay(group types.NamespacedName) time.Duration {
	known := m.get(ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: group})
	return groupDelay + time.Duration(known.members)*groupDelayPerInstance
}
