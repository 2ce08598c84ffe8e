package publish

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/deadline"
)

// awaited decides which Instances without a device are kept, because their devices may be
// reported again. It has the [absent] of each Configuration.
type awaited struct {
	allowance time.Duration
	absent    sync.Map
}

// absent are the Instances of a Configuration that no device has.
type absent struct {
	listed time.Time            // [streams.Snapshot.Listed] when they were last looked at
	until  map[string]time.Time // when their devices count as gone, by name
}

// split returns which of the Instances that no device has are kept, sorted by name, and
// whose devices are gone. Before the snapshot is settled, all are kept; then those that are
// missing since an endpoint's first list, for the allowance, and local ones for the grace.
// next is when the result changes without an event; zero for never.
func (a *awaited) split(
	configuration types.NamespacedName, unclaimed []*v0.Instance, snapshot streams.Snapshot, now time.Time,
) (kept, gone []*v0.Instance, next time.Time) {
	known, _ := a.absent.Load(configuration)
	before, _ := known.(absent)
	after := absent{listed: snapshot.Listed, until: map[string]time.Time{}}
	for _, instance := range unclaimed {
		end, found := before.until[instance.Name]
		if !found && !snapshot.Listed.Equal(before.listed) {
			end = snapshot.Listed.Add(a.allowance)
		}
		if !found && !instance.Spec.Shared && snapshot.Grace.After(end) {
			end = snapshot.Grace
		}
		after.until[instance.Name] = end
		switch {
		case snapshot.Settled && !end.After(now):
			gone = append(gone, instance)
		case instance.DeletionTimestamp == nil:
			kept = append(kept, instance)
			next = deadline.Earliest(next, end)
		}
	}
	if snapshot.Settled {
		a.absent.Store(configuration, after)
	} else {
		next = time.Time{}
	}
	slices.SortFunc(kept, func(a, b *v0.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return kept, gone, next
}
