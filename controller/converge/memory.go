package converge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/internal/backoff"
)

// Another client that undoes a repair again and again contends for the object. That is
// reported after MinRepairs, and after Burst only one repair is made in each interval.
// It is over when Calm has passed without a repair.
const (
	MinRepairs = 10
	Burst      = 100
	interval   = 30 * time.Second
	Calm       = 2 * time.Minute
)

// Back-off for replacing terminated Pods. It doubles with each replacement and
// resets once the parent's Pods have stayed up for healthyAfter.
const (
	firstReplacement = time.Second
	maxReplacement   = 5 * time.Minute
	healthyAfter     = 10 * time.Minute
)

// memory holds one record for each parent.
type memory struct {
	mu      sync.Mutex
	records map[types.UID]*record
}

// of returns the record of a parent. Only one pass at a time has it, so it has no lock.
func (m *memory) of(parent types.UID) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[parent] == nil {
		m.records[parent] = &record{}
	}
	return m.records[parent]
}

func (m *memory) forget(parent types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, parent)
}

// record is what this process knows about a parent and its objects that neither the
// parent's inventory nor the watches say, or that they do not prove.
type record struct {
	// applied are the UIDs of the objects that were applied.
	applied []types.UID
	// unreported are the entries that were applied in passes without a report.
	unreported []v0.ResourceStatus
	// disputes are about objects that other clients have changed lately.
	disputes map[inventory.Ref]*dispute
	pods     replacements
}

// dispute is the recent history of an object that other clients change or delete.
type dispute struct {
	latest  time.Time // entry of this history
	changed int       // passes in a row in which the object was not the one that was planned for
	repairs int       // what the API server has refused is none
	manager string    // of the other clients, once it is known
}

// hasApplied reports whether an object was applied for the parent.
func (r *record) hasApplied(object types.UID) bool { return slices.Contains(r.applied, object) }

// apply records that an object was applied. former is the UID in its recorded entry:
// another one is that of an object that was deleted.
func (r *record) apply(object inventory.Ref, uid, former types.UID) {
	if found := r.disputes[object]; found != nil {
		found.changed = 0
	}
	if former != uid {
		r.drop(former)
	}
	if !r.hasApplied(uid) {
		r.applied = append(r.applied, uid)
	}
}

// drop forgets an object that was deleted.
func (r *record) drop(object types.UID) {
	r.applied = slices.DeleteFunc(r.applied, func(uid types.UID) bool { return uid == object })
}

// about returns the dispute about an object, which begins now if there is none.
func (r *record) about(object inventory.Ref, now time.Time) *dispute {
	if r.disputes == nil {
		r.disputes = map[inventory.Ref]*dispute{}
	}
	if r.disputes[object] == nil {
		r.disputes[object] = &dispute{}
	}
	r.disputes[object].latest = now
	return r.disputes[object]
}

// calm forgets the disputes that are over.
func (r *record) calm(now time.Time) {
	maps.DeleteFunc(r.disputes, func(_ inventory.Ref, found *dispute) bool { return found.over(now) == 0 })
}

// over returns how long it takes until a dispute is over if the object is not changed again.
func (d *dispute) over(now time.Time) time.Duration { return max(Calm-now.Sub(d.latest), 0) }

// wait returns how long the next repair of an object must wait: 0 if it may be made now.
func (r *record) wait(object inventory.Ref, now time.Time) time.Duration {
	if found := r.disputes[object]; found != nil && found.repairs >= Burst {
		return max(interval-now.Sub(found.latest), 0)
	}
	return 0
}

// report records the inventory after a pass. If the pass is not reported, the next
// one starts from this inventory.
func (r *record) report(resources []v0.ResourceStatus, reported bool) {
	r.unreported = nil
	if !reported {
		r.unreported = slices.DeleteFunc(slices.Clone(resources), func(entry v0.ResourceStatus) bool { return entry.UID == "" })
	}
}

// complete returns a recorded inventory with the entries that were not reported.
func (r *record) complete(recorded []v0.ResourceStatus) []v0.ResourceStatus {
	if len(r.unreported) == 0 {
		return recorded
	}
	all := inventory.Index(append(slices.Clone(recorded), r.unreported...))
	completed := slices.Collect(maps.Values(all))
	inventory.Sort(completed)
	return completed
}

// replacements is the recent history of a parent's Pods that have terminated.
type replacements struct {
	count  int       // since the Pods were last healthy
	latest time.Time // of the replacements
	due    time.Time // when a terminated Pod may be replaced; zero if none waits
}

// wait returns how long to wait before a terminated Pod is replaced, 0 for now. It is
// called while there is such a Pod.
func (r *replacements) wait(now time.Time) time.Duration {
	if r.due.IsZero() {
		if now.Sub(r.latest) >= healthyAfter {
			r.count = 0
		}
		r.due = now.Add(backoff.Delay(firstReplacement, maxReplacement, r.count))
	}
	return max(0, r.due.Sub(now))
}

// done records that no terminated Pod waits any more. If another client has removed it,
// that counts, too: otherwise the next one would be replaced without delay.
func (r *replacements) done(now time.Time) {
	if !r.due.IsZero() {
		*r = replacements{count: r.count + 1, latest: now}
	}
}
