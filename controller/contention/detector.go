package contention

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/inventory"
)

// Burst is how many repairs of an object are made at once. Then one more is allowed
// every interval.
const Burst = 100

// interval is the interval of repairs after Burst.
const interval = 30 * time.Second

const (
	// MinRepairs is how many repairs count as contention, which is reported.
	MinRepairs = 10
	// Calm is the time without a repair after which contention is over.
	Calm = 2 * time.Minute
)

// Object is an object of one parent.
type Object struct {
	Parent types.UID
	inventory.Ref
}

// Detector holds one entry for each object that was repaired recently. It is safe
// for concurrent use.
type Detector struct {
	mu      sync.Mutex
	objects map[Object]*history
	swept   time.Time
}

// history is the recent history of one object.
type history struct {
	latest  time.Time // repair
	repairs int
	limiter *rate.Limiter
	manager string
}

// NewDetector returns a Detector without entries.
func NewDetector() *Detector { return &Detector{objects: map[Object]*history{}} }

// Wait returns how long the next repair of an object must wait: 0 if it may be made now.
func (d *Detector) Wait(object Object, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := d.objects[object]
	if entry == nil || now.Sub(entry.latest) >= Calm {
		return 0
	}
	missing := 1 - entry.limiter.TokensAt(now)
	return max(0, time.Duration(missing*float64(interval))).Round(time.Millisecond)
}

// Repaired counts a repair that has happened: what the API server has refused undoes
// nothing that another client did.
func (d *Detector) Repaired(object Object, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep(now)
	entry := d.objects[object]
	if entry == nil || now.Sub(entry.latest) >= Calm {
		entry = &history{limiter: rate.NewLimiter(rate.Every(interval), Burst)}
		d.objects[object] = entry
	}
	entry.limiter.AllowN(now, 1)
	entry.repairs++
	entry.latest = now
}

// Contention is contention that has not calmed down.
type Contention struct {
	// Manager names the other clients; empty if they are not known.
	Manager string
	// Over is when it ends if the object is not changed again.
	Over time.Duration
}

// Contended returns the contention of an object, if there is any.
func (d *Detector) Contended(object Object, now time.Time) (Contention, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := d.objects[object]
	if entry == nil || entry.repairs < MinRepairs || now.Sub(entry.latest) >= Calm {
		return Contention{}, false
	}
	return Contention{Manager: entry.manager, Over: Calm - now.Sub(entry.latest)}, true
}

// NeedsManager reports whether the caller should look up the field managers of the
// other clients: once for each contention.
func (d *Detector) NeedsManager(object Object) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := d.objects[object]
	return entry != nil && entry.repairs >= MinRepairs-1 && entry.manager == ""
}

// SetManager records the field managers of the other clients.
func (d *Detector) SetManager(object Object, manager string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if entry := d.objects[object]; entry != nil {
		entry.manager = manager
	}
}

// Forget drops the objects of a parent.
func (d *Detector) Forget(parent types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for object := range d.objects {
		if object.Parent == parent {
			delete(d.objects, object)
		}
	}
}

// Len returns the number of objects with an entry.
func (d *Detector) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.objects)
}

// sweep drops, at most once in Calm, the objects that are no longer contended. The
// caller holds the lock.
func (d *Detector) sweep(now time.Time) {
	if now.Sub(d.swept) < Calm {
		return
	}
	d.swept = now
	for object, entry := range d.objects {
		if now.Sub(entry.latest) >= Calm {
			delete(d.objects, object)
		}
	}
}
