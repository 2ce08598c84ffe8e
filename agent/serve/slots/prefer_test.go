package slots

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

func TestTurn(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		node     string
		nodes    string
		capacity int
		want     []int
	}{
		{"nobody else competes", "a", "a", 3, []int{0, 1, 2}},
		{"not recorded yet", "a", "", 3, []int{0, 1, 2}},
		{"up", "a", "a b", 5, []int{0, 1, 4, 3, 2}},
		{"the opposite", "b", "a b", 5, []int{2, 3, 4, 1, 0}},
		{"the order of the list does not matter", "b", "b a", 5, []int{2, 3, 4, 1, 0}},
		{"of three", "a", "c a b", 6, []int{0, 1, 3, 2, 5, 4}},
		{"of three", "b", "c a b", 6, []int{2, 3, 5, 4, 1, 0}},
		{"of three", "c", "c a b", 6, []int{4, 5, 1, 0, 3, 2}},
		{"one slot", "b", "a b", 1, []int{0}},
		{"more nodes than slots", "a", "a b c", 2, []int{0, 1}},
		{"more nodes than slots", "b", "a b c", 2, []int{0, 1}},
		{"more nodes than slots", "c", "a b c", 2, []int{1, 0}},
		{"not in the list, as the first", "A", "a b", 4, []int{0, 1, 3, 2}},
		{"not in the list, as the last", "c", "a b", 4, []int{0, 1, 3, 2}},
	} {
		inst := &instance{capacity: tc.capacity, place: placeOf(tc.node, strings.Fields(tc.nodes))}
		var got []int
		for number := range tc.capacity {
			got = append(got, number)
		}
		slices.SortFunc(got, func(a, b int) int { return cmp.Compare(inst.turn(a), inst.turn(b)) })
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: node %s of %q takes %v, want %v", tc.reason, tc.node, tc.nodes, got, tc.want)
		}
	}
}

// TestPreferencesSpread checks that two nodes meet only at the last free slot of a device,
// however many each of them takes: two that choose the same slot at once cost a Pod.
func TestPreferencesSpread(t *testing.T) {
	for capacity := 2; capacity <= 20; capacity++ {
		order := func(node string) []int {
			inst := &instance{capacity: capacity, place: placeOf(node, []string{"a", "b"})}
			slots := make([]int, capacity)
			for number := range slots {
				slots[number] = number
			}
			slices.SortFunc(slots, func(a, b int) int { return cmp.Compare(inst.turn(a), inst.turn(b)) })
			return slots
		}
		a, b := order("a"), order("b")
		for taken := range capacity {
			if both := slices.Concat(a[:taken], b[:capacity-taken]); len(slices.Compact(slices.Sorted(slices.Values(both)))) < capacity {
				t.Errorf("capacity %d: one node takes %v and the other %v", capacity, a[:taken], b[:capacity-taken])
			}
		}
	}
}
