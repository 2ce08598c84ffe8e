package converge

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

// History is what this process knows about a parent and its objects that neither the
// parent's inventory nor the watches say, or that they do not prove. At first it is empty. It
// is for one pass at a time.
type History struct {
	// applied are the UIDs of the objects that were applied.
	applied []types.UID
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
func (h *History) hasApplied(object types.UID) bool { return slices.Contains(h.applied, object) }

// apply records that an object was applied. former is the UID in its recorded entry:
// another one is that of an object that was deleted.
func (h *History) apply(object inventory.Ref, uid, former types.UID) {
	if found := h.disputes[object]; found != nil {
		found.changed = 0
	}
	if former != uid {
		h.drop(former)
	}
	if !h.hasApplied(uid) {
		h.applied = append(h.applied, uid)
	}
}

// drop forgets an object that was deleted.
func (h *History) drop(object types.UID) {
	h.applied = slices.DeleteFunc(h.applied, func(uid types.UID) bool { return uid == object })
}

// about returns the dispute about an object, which begins now if there is none.
func (h *History) about(object inventory.Ref, now time.Time) *dispute {
	if h.disputes == nil {
		h.disputes = map[inventory.Ref]*dispute{}
	}
	if h.disputes[object] == nil {
		h.disputes[object] = &dispute{}
	}
	h.disputes[object].latest = now
	return h.disputes[object]
}

// calm forgets the disputes that are over.
func (h *History) calm(now time.Time) {
	maps.DeleteFunc(h.disputes, func(_ inventory.Ref, found *dispute) bool { return found.over(now) == 0 })
}

// over returns how long it takes until a dispute is over if the object is not changed again.
func (d *dispute) over(now time.Time) time.Duration { return max(Calm-now.Sub(d.latest), 0) }

// wait returns how long the next repair of an object must wait: 0 if it may be made now.
func (h *History) wait(object inventory.Ref, now time.Time) time.Duration {
	if found := h.disputes[object]; found != nil && found.repairs >= Burst {
		return max(interval-now.Sub(found.latest), 0)
	}
	return 0
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
