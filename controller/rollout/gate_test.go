package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const cameras types.UID = "cameras"

var one = intstr.FromInt32(1)

// names of n Instances, sorted.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("cam-%02d", i)
	}
	return all
}

type wakes []string

func (w *wakes) wake(name types.NamespacedName) { *w = append(*w, name.Name) }

func (w *wakes) take() []string {
	taken := slices.Clone(*w)
	*w = nil
	return taken
}

func TestMaxUnavailable(t *testing.T) {
	for _, test := range []struct {
		max       intstr.IntOrString
		instances int
		want      int
	}{
		{intstr.FromInt32(3), 100, 3},
		{intstr.FromString("25%"), 10, 2},
		{intstr.FromString("1%"), 10, 1},
		{intstr.FromString("100%"), 7, 7},
	} {
		if got, err := maxUnavailable(test.max, test.instances); err != nil || got != test.want {
			t.Errorf("%v of %d: %d, %v; want %d", test.max.String(), test.instances, got, err, test.want)
		}
	}
}

// newGate returns a Gate that knows the Instances of one Configuration.
func newGate(w *wakes, all []string) *Gate {
	gate := NewGate(w.wake)
	gate.SetInstances(cameras, "ns", all, one)
	return gate
}

func (w *wakes) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := w.take(); !slices.Equal(got, want) {
		t.Errorf("woke %v, want %v", got, want)
	}
}

func TestNonePassesBeforeAllAreReported(t *testing.T) {
	var w wakes
	all := names(3)
	gate := newGate(&w, all)
	gate.Observe(cameras, all[0], true)
	if gate.TryAcquire(cameras, all[0], one) {
		t.Fatal("passed although the others have not been reported")
	}
	gate.Observe(cameras, all[1], true)
	w.expect(t)
	gate.Observe(cameras, all[2], true)
	w.expect(t, all[0])
	if !gate.TryAcquire(cameras, all[0], one) {
		t.Fatal("did not pass although all are ready")
	}
}

func TestNonePassesBeforeTheMembersAreKnown(t *testing.T) {
	var w wakes
	all, gate := names(2), NewGate(w.wake)
	for _, name := range all {
		gate.Observe(cameras, name, true)
	}
	if gate.TryAcquire(cameras, all[0], one) {
		t.Error("passed although there may be more Instances")
	}
	gate.SetInstances(cameras, "ns", all, one)
	w.expect(t, all[0])
}

func TestTheUnavailableGoFirstAndCount(t *testing.T) {
	var w wakes
	all := names(3)
	gate := newGate(&w, all)
	gate.Observe(cameras, all[0], true)
	gate.Observe(cameras, all[1], true)
	gate.Observe(cameras, all[2], false)
	if gate.TryAcquire(cameras, all[0], one) {
		t.Error("passed although another is not ready")
	}
	if !gate.TryAcquire(cameras, all[2], one) {
		t.Error("the one that is not ready must wait")
	}
	gate.Report(cameras, all[2], true)
	w.expect(t, all[0])
}

func TestAnInstanceThatBreaksWhileWaitingPasses(t *testing.T) {
	all := names(2)
	gate := newGate(new(wakes), all)
	gate.Observe(cameras, all[0], true)
	gate.Observe(cameras, all[1], false)
	if gate.TryAcquire(cameras, all[0], one) {
		t.Fatal("passed although another is not ready")
	}
	gate.Observe(cameras, all[0], false)
	if !gate.TryAcquire(cameras, all[0], one) {
		t.Error("must wait although it is not ready")
	}
}

// A device that has gone holds up no other: whether it was broken, was never
// reported, or was about to be changed.
func TestAnUnpluggedDeviceHoldsUpNone(t *testing.T) {
	for name, before := range map[string]func(*Gate, string){
		"broken":         func(gate *Gate, name string) { gate.Observe(cameras, name, false) },
		"never reported": func(*Gate, string) {},
		"being changed": func(gate *Gate, name string) {
			gate.Observe(cameras, name, true)
			gate.TryAcquire(cameras, name, one)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w wakes
			all := names(2)
			gate := newGate(&w, all)
			gate.Observe(cameras, all[0], true)
			before(gate, all[1])
			if gate.TryAcquire(cameras, all[0], one) {
				t.Error("passed although the other is not ready")
			}
			gate.RemoveInstance(cameras, all[1])
			w.expect(t, all[0])
		})
	}
}

// The same if the list of Instances is older than the event.
func TestAnOldListHoldsUpNone(t *testing.T) {
	var w wakes
	all := names(2)
	gate := newGate(&w, all)
	gate.RemoveInstance(cameras, all[1])
	gate.SetInstances(cameras, "ns", all, one)
	gate.Observe(cameras, all[0], true)
	if gate.TryAcquire(cameras, all[0], one) {
		t.Error("passed although the list has another")
	}
	gate.Observe(cameras, "new", true)
	gate.SetInstances(cameras, "ns", all[:1], one)
	w.expect(t, all[0])
	gate.Report(cameras, "new", false) // is not forgotten because it is newer than the list
	if gate.TryAcquire(cameras, all[0], one) {
		t.Error("passed although a new one is not ready")
	}
}

// An Instance that does not use its turn, because its templates cannot be rendered,
// holds up no other.
func TestAnUnusedTurnGoesToTheNext(t *testing.T) {
	var w wakes
	all := names(3)
	gate := newGate(&w, all)
	for _, name := range all {
		gate.Observe(cameras, name, true)
	}
	gate.TryAcquire(cameras, all[0], one)
	gate.TryAcquire(cameras, all[1], one)
	gate.TryAcquire(cameras, all[2], one)
	gate.Report(cameras, all[0], true)
	w.expect(t, all[1])
	gate.Done(cameras, all[0]) // it had no turn
	w.expect(t)
	gate.Done(cameras, all[1])
	w.expect(t, all[2])
	if !gate.TryAcquire(cameras, all[2], one) {
		t.Error("must wait in its turn")
	}
}

// A new limit counts at once.
func TestTheLimitChanges(t *testing.T) {
	var w wakes
	all := names(4)
	gate := NewGate(w.wake)
	gate.SetInstances(cameras, "ns", all, intstr.FromString("100%"))
	for _, name := range all {
		gate.Observe(cameras, name, true)
	}
	if !gate.TryAcquire(cameras, all[0], one) || gate.TryAcquire(cameras, all[1], one) || gate.TryAcquire(cameras, all[2], one) {
		t.Error("the limit is not the one of the templates")
	}
	gate.SetInstances(cameras, "ns", all, intstr.FromString("50%"))
	w.expect(t, all[1])
}

func TestWithoutLimitNoneWaits(t *testing.T) {
	var w wakes
	all := names(2)
	gate := newGate(&w, all)
	gate.Observe(cameras, all[0], true)
	gate.TryAcquire(cameras, all[0], one)
	gate.Forget(cameras)
	w.expect(t, all[0])
	if gate.Len() != 0 {
		t.Error("the Configuration is remembered")
	}
}

// Whatever the order in which Instances are reconciled, become ready, stay broken
// for a while or go, the limit holds and all pass in the end.
func TestRandomRollouts(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := names(1 + random.IntN(12))
		most := 1 + random.IntN(len(all))
		limit := intstr.FromInt(most)
		queue := slices.Clone(all)
		gate := NewGate(func(name types.NamespacedName) { queue = append(queue, name.Name) })
		gate.SetInstances(cameras, "ns", all, limit)
		changed, settling := map[string]bool{}, []string{}
		for len(queue)+len(settling) > 0 {
			if len(settling) > 0 && (len(queue) == 0 || random.IntN(2) == 0) {
				i := random.IntN(len(settling))
				if random.IntN(10) == 0 {
					gate.RemoveInstance(cameras, settling[i])
				} else {
					gate.Report(cameras, settling[i], true)
				}
				settling = slices.Delete(settling, i, i+1)
				continue
			}
			i := random.IntN(len(queue))
			name := queue[i]
			queue = slices.Delete(queue, i, i+1)
			if changed[name] {
				gate.Done(cameras, name)
				continue
			}
			if random.IntN(10) == 0 { // it fails, and is tried again
				queue = append(queue, name)
				gate.Done(cameras, name)
				continue
			}
			gate.Observe(cameras, name, true)
			if gate.TryAcquire(cameras, name, limit) {
				changed[name] = true
				settling = append(settling, name)
			}
			gate.Done(cameras, name)
			if len(settling) > most {
				t.Fatalf("seed %d: %d are unavailable, %d may be", seed, len(settling), most)
			}
		}
		if len(changed) != len(all) {
			t.Fatalf("seed %d: %d of %d were changed", seed, len(changed), len(all))
		}
	}
}

// rollOut takes n Instances through a rollout and returns how many times one of
// them was reconciled.
func rollOut(n int, limit intstr.IntOrString) (passes int) {
	all := names(n)
	queue := slices.Clone(all)
	gate := NewGate(func(name types.NamespacedName) { queue = append(queue, name.Name) })
	gate.SetInstances(cameras, "ns", all, limit)
	changed := make(map[string]bool, n)
	for len(queue) > 0 {
		passes++
		name := queue[0]
		queue = queue[1:]
		if changed[name] {
			gate.Report(cameras, name, true)
			gate.Done(cameras, name)
			continue
		}
		gate.Observe(cameras, name, true)
		if gate.TryAcquire(cameras, name, limit) {
			changed[name] = true
			queue = append(queue, name) // its objects become ready
		}
		gate.Done(cameras, name)
	}
	return passes
}

// An Instance of a large rollout is reconciled as often as one of a small rollout.
func TestPassesPerInstance(t *testing.T) {
	for _, limit := range []intstr.IntOrString{one, intstr.FromInt32(10), intstr.FromString("25%"), intstr.FromString("100%")} {
		few, many := float64(rollOut(50, limit))/50, float64(rollOut(5000, limit))/5000
		if many > 1.1*few {
			t.Errorf("limit %s: %.2f passes for each of 5000 Instances, %.2f for each of 50", limit.String(), many, few)
		}
	}
}
