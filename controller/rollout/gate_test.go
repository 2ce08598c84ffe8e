package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// Each script is a list of events and of what must follow. "list", "ready" and "broken" are what
// the gate is told; "passes" and "waits", what it answers if the Instance is ready, or "broken";
// "woke", whom it wakes because of the event before.
func TestScripts(t *testing.T) {
	for name, script := range map[string]string{
		"none passes before all are reported":      "list a b c; ready a; waits a; ready b; ready c; woke a; passes a",
		"none passes before the members are known": "waits a; waits b; list a b; woke a",
		"the unavailable go first, and count":      "list a b c; ready a; ready b; broken c; waits a; passes c; ready c; woke a",
		"what breaks while it waits passes":        "list a b; ready a; broken b; waits a; passes a broken",
		"what has passed counts until it reports":  "list a b; ready a; ready b; passes a; passes a; waits b",
		// A device that has gone holds up no other.
		"a broken one goes":        "list a b; ready a; broken b; waits a; gone b; woke a",
		"an unreported one goes":   "list a b; ready a; waits a; gone b; woke a",
		"one goes while changed":   "list a b; ready a; ready b; passes b; waits a; gone b; woke a",
		"one has gone, not listed": "list a b; gone b; list a b; ready a; waits a; list a; woke a; passes a",
		"one is newer than a list": "list a; ready a; ready new; list a; broken new; waits a",
		// So does one that does not use its turn, because its templates cannot be rendered.
		"an unused turn goes to the next": "list a b c; ready a; ready b; ready c; passes a; waits b; waits c; " +
			"ready a; woke b; ends a; ends b; woke c; passes c",
		"a new limit counts at once": "limit 100%; list a b c d; ready a; ready b; ready c; ready d; " +
			"limit 1; passes a; waits b; waits c; limit 50%; list a b c d; woke b",
		"a percentage is rounded down": "limit 50%; list a b c; ready a; ready b; ready c; passes a; waits b",
		"but never to 0":               "limit 1%; list a b; ready a; ready b; passes a; waits b",
		"without a limit none waits":   "list a b; ready a; waits a; forget; woke a",
	} {
		t.Run(name, func(t *testing.T) {
			limit, woken := one, []string{}
			gate := NewGate(func(name types.NamespacedName) { woken = append(woken, name.Name) })
			for event := range strings.SplitSeq(script, "; ") {
				verb, rest, _ := strings.Cut(event, " ")
				if verb == "woke" {
					if got := strings.Join(woken, " "); got != rest {
						t.Errorf("woke %q, want %q", got, rest)
					}
					woken = nil
					continue
				}
				if len(woken) > 0 {
					t.Errorf("woke %v before %q", woken, event)
				}
				switch verb {
				case "limit":
					limit = intstr.Parse(rest)
				case "list":
					gate.SetInstances(cameras, "ns", strings.Fields(rest), limit)
				case "ready", "broken":
					gate.Report(cameras, rest, verb == "ready")
				case "passes", "waits":
					name, broken := strings.CutSuffix(rest, " broken")
					if passes := gate.TryAcquire(cameras, name, !broken, limit); passes != (verb == "passes") {
						t.Errorf("%s: passes: %t", event, passes)
					}
				case "ends":
					gate.Done(cameras, rest)
				case "gone":
					gate.RemoveInstance(cameras, rest)
				case "forget":
					if gate.Forget(cameras); gate.Len() != 0 {
						t.Error("the Configuration is remembered")
					}
				}
			}
			if len(woken) > 0 {
				t.Errorf("woke %v at the end", woken)
			}
		})
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
			if gate.TryAcquire(cameras, name, true, limit) {
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
		if gate.TryAcquire(cameras, name, true, limit) {
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
