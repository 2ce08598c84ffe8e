package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var cameras = types.NamespacedName{Namespace: "ns", Name: "cameras"}

// names of n Instances, sorted.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("cam-%02d", i)
	}
	return all
}

type woken []string

func (w *woken) wake(name types.NamespacedName) { *w = append(*w, name.Name) }

func (w *woken) take() []string {
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
		if got, err := MaxUnavailable(test.max, test.instances); err != nil || got != test.want {
			t.Errorf("%v of %d: %d, %v; want %d", test.max.String(), test.instances, got, err, test.want)
		}
	}
}

func TestNonePassesBeforeAllAreReported(t *testing.T) {
	var w woken
	gate, all := NewGate(w.wake), names(3)
	gate.Know(cameras, all[0], true)
	if gate.Pass(cameras, all[0], all, 1) {
		t.Fatal("passed although the others have not been reported")
	}
	gate.Know(cameras, all[1], true)
	if got := w.take(); got != nil {
		t.Fatalf("woke %v although one has not been reported", got)
	}
	gate.Know(cameras, all[2], true)
	if got := w.take(); !slices.Equal(got, all[:1]) {
		t.Fatalf("woke %v, want the one that waits", got)
	}
	if !gate.Pass(cameras, all[0], all, 1) {
		t.Fatal("did not pass although all are ready")
	}
}

func TestTheUnavailableGoFirstAndCount(t *testing.T) {
	var w woken
	gate, all := NewGate(w.wake), names(3)
	gate.Know(cameras, all[0], true)
	gate.Know(cameras, all[1], true)
	gate.Know(cameras, all[2], false)
	if gate.Pass(cameras, all[0], all, 1) {
		t.Error("passed although another is not ready")
	}
	if !gate.Pass(cameras, all[2], all, 1) {
		t.Error("the one that is not ready must wait")
	}
	gate.Settle(cameras, all[2], true)
	if got := w.take(); !slices.Equal(got, all[:1]) {
		t.Errorf("woke %v, want the one that waits", got)
	}
}

func TestAnInstanceThatBreaksWhileWaitingPasses(t *testing.T) {
	gate, all := NewGate(new(woken).wake), names(2)
	gate.Know(cameras, all[0], true)
	gate.Know(cameras, all[1], false)
	if gate.Pass(cameras, all[0], all, 1) {
		t.Fatal("passed although another is not ready")
	}
	gate.Know(cameras, all[0], false)
	if !gate.Pass(cameras, all[0], all, 1) {
		t.Error("must wait although it is not ready")
	}
}

func TestAnUnpluggedDeviceHoldsUpNone(t *testing.T) {
	var w woken
	gate, all := NewGate(w.wake), names(2)
	gate.Know(cameras, all[0], true)
	gate.Know(cameras, all[1], false)
	gate.Pass(cameras, all[0], all, 1)
	gate.Gone(types.NamespacedName{Namespace: "ns", Name: all[1]})
	if got := w.take(); !slices.Equal(got, all[:1]) {
		t.Errorf("woke %v, want the one that waits", got)
	}
}

func TestWithoutLimitNoneWaits(t *testing.T) {
	var w woken
	gate, all := NewGate(w.wake), names(2)
	gate.Know(cameras, all[0], true)
	gate.Pass(cameras, all[0], all, 1)
	gate.Forget(cameras)
	if got := w.take(); !slices.Equal(got, all[:1]) {
		t.Errorf("woke %v, want the one that waits", got)
	}
}

// Whatever the order in which Instances are reconciled, become ready or stay
// broken for a while, the limit holds and all pass in the end.
func TestRandomRollouts(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := names(1 + random.IntN(12))
		most := 1 + random.IntN(len(all))
		queue := slices.Clone(all)
		gate := NewGate(func(name types.NamespacedName) { queue = append(queue, name.Name) })
		changed, settling := map[string]bool{}, []string{}
		for len(queue)+len(settling) > 0 {
			if len(settling) > 0 && (len(queue) == 0 || random.IntN(2) == 0) {
				i := random.IntN(len(settling))
				gate.Settle(cameras, settling[i], true)
				settling = slices.Delete(settling, i, i+1)
				continue
			}
			i := random.IntN(len(queue))
			name := queue[i]
			queue = slices.Delete(queue, i, i+1)
			if changed[name] {
				continue
			}
			gate.Know(cameras, name, true)
			if gate.Pass(cameras, name, all, most) {
				changed[name] = true
				settling = append(settling, name)
			}
			if len(settling) > most {
				t.Fatalf("seed %d: %d are unavailable, %d may be", seed, len(settling), most)
			}
		}
		if len(changed) != len(all) {
			t.Fatalf("seed %d: %d of %d were changed", seed, len(changed), len(all))
		}
	}
}
