package publish

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
)

const (
	// minRejectedDelay and maxRejectedDelay bound the delay before a write that was rejected
	// is repeated without a change: a quota, a policy or a permission may have changed.
	minRejectedDelay = time.Second
	maxRejectedDelay = 5 * time.Minute
	// maxRejections bounds how many rejections are remembered, for devices whose IDs
	// change. Those that are repeated first are forgotten first.
	maxRejections = v0.MaxDevices
)

// rejections are the writes that the API server has rejected. Their reasons stay in the
// status until the next attempt. It is safe for concurrent use.
type rejections struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*rejection
}

// rejection is what is known of the rejected writes of one Instance.
type rejection struct {
	err    error
	action Action
	want   [sha256.Size]byte // digest of the spec
	count  int
	until  time.Time
}

func newRejections() *rejections { return &rejections{all: map[types.NamespacedName]*rejection{}} }

// standing returns the error of the last attempt to take a step, and when to repeat it.
// The error is nil if the step should be taken now.
func (r *rejections) standing(instance types.NamespacedName, step Step, now time.Time) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.all[instance]; last != nil && now.Before(last.until) && last.of(step) {
		return last.until, last.err
	}
	return time.Time{}, nil
}

// of reports whether the step that was rejected is this one.
func (r *rejection) of(step Step) bool {
	return r.action == step.Action && r.want == digest(step.Want)
}

func digest(instance *v0.Instance) [sha256.Size]byte {
	data, _ := json.Marshal(instance.Spec) // maps are sorted; it has nothing that cannot be encoded
	return sha256.Sum256(data)
}

// add records that a step was rejected, and returns when to repeat it. The delay doubles
// with each repetition, and is random.
func (r *rejections) add(instance types.NamespacedName, step Step, err error, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.all[instance]
	if last == nil || !last.of(step) {
		last = &rejection{action: step.Action, want: digest(step.Want)}
		r.all[instance] = last
	}
	last.err, last.until = err, now.Add(wait.Jitter(backoff.Delay(minRejectedDelay, maxRejectedDelay, last.count), 0.5))
	last.count++
	r.prune(now)
	return last.until
}

// prune forgets rejected writes that nobody wants any longer. The caller holds mu.
func (r *rejections) prune(now time.Time) {
	var first types.NamespacedName
	for name, other := range r.all {
		if now.Sub(other.until) > maxRejectedDelay {
			delete(r.all, name)
		} else if r.all[first] == nil || other.until.Before(r.all[first].until) {
			first = name
		}
	}
	if len(r.all) > maxRejections {
		delete(r.all, first)
	}
}

// forget records that the Instance is as it should be.
func (r *rejections) forget(instance types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, instance)
}
