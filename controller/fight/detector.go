package fight

import (
	"sync"
	"time"

	"akri.sh/akri/controller/inventory"
)

// So many repairs of one object are a fight, which is told of. After a Burst of
// them one more is made at a time. A fight is over when no repair was needed for
// a while.
const (
	Many  = 10
	Burst = 100
	Every = 30 * time.Second
	Calm  = 2 * time.Minute
)

// Detector holds one entry for each object that was repaired of late. It is safe
// for concurrent use.
type Detector struct {
	mutex   sync.Mutex
	objects map[inventory.Ref]*bout
	swept   time.Time
}

// bout is the recent history of one object.
type bout struct {
	began, latest time.Time // the first and the latest repair
	repairs       int
	saved         int // repairs that may still be made at once, as of latest
	by            string
}

// NewDetector returns a Detector that knows of no repair.
func NewDetector() *Detector { return &Detector{objects: map[inventory.Ref]*bout{}} }

// Repair asks for a repair of an object. It returns 0 if it may be made, and
// counts it; else how long to wait.
func (d *Detector) Repair(object inventory.Ref, now time.Time) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.forget(now)
	entry := d.objects[object]
	if entry == nil || now.Sub(entry.latest) >= Calm {
		entry = &bout{began: now, saved: Burst}
		d.objects[object] = entry
	}
	if entry.saved == 0 {
		if since := now.Sub(entry.latest); since < Every {
			return Every - since
		}
		entry.saved = 1
	}
	entry.saved--
	entry.repairs++
	entry.latest = now
	return 0
}

// Fight is a fight that goes on.
type Fight struct {
	// Repairs of the object so far, and since when.
	Repairs int
	Since   time.Duration
	// By says who the others are; empty if that is not known.
	By string
	// Over is when it ends, if nobody changes the object again.
	Over time.Duration
}

// Goes tells whether an object is fought over.
func (d *Detector) Goes(object inventory.Ref, now time.Time) (Fight, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	entry := d.objects[object]
	if entry == nil || entry.repairs < Many || now.Sub(entry.latest) >= Calm {
		return Fight{}, false
	}
	return Fight{Repairs: entry.repairs, Since: now.Sub(entry.began), By: entry.by, Over: Calm - now.Sub(entry.latest)}, true
}

// Asks tells whether it is time to find out who the others are: once in a fight.
func (d *Detector) Asks(object inventory.Ref) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	entry := d.objects[object]
	return entry != nil && entry.repairs >= Many-1 && entry.by == ""
}

// Blame tells who the others are.
func (d *Detector) Blame(object inventory.Ref, who string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if entry := d.objects[object]; entry != nil {
		entry.by = who
	}
}

// Len is how many objects are remembered.
func (d *Detector) Len() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return len(d.objects)
}

// forget drops, now and then, the objects that nobody fights over. The caller
// holds the lock.
func (d *Detector) forget(now time.Time) {
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
