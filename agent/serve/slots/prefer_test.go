package slots

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v0 "akri.sh/akri/api/v0"
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

// market is an API server with one Instance, the machines of the nodes that see it, and
// what is on its way between them. Kubelets request one slot after the other.
type market struct {
	rng      *rand.Rand
	capacity int
	nodes    []string
	prefer   bool // the nodes know each other
	usage    map[int]v0.Owner
	version  uint64
	machines []*Machine
	lists    [][]int    // the healthy IDs that a kubelet knows
	waiting  []int      // requests of a kubelet that it has not sent yet
	has      [][]int    // the slots that a kubelet's containers have
	way      [][]func() // to a node, in order
	refused  int
}

func newMarket(seed uint64, nodes, capacity int, prefer bool) *market {
	w := &market{
		rng: rand.New(rand.NewPCG(seed, 0)), capacity: capacity, prefer: prefer, usage: map[int]v0.Owner{}, version: 1,
		lists: make([][]int, nodes), waiting: make([]int, nodes), has: make([][]int, nodes), way: make([][]func(), nodes),
	}
	for i := range nodes {
		w.nodes = append(w.nodes, fmt.Sprint("node-", i))
	}
	for i := range nodes {
		w.machines = append(w.machines, New(w.nodes[i]))
		w.step(i, DevicePublished{Instance: "cam", Configuration: "cams", Shared: true, Capacity: capacity, Online: true})
		w.step(i, InstanceRecorded{"cam", w.record()})
	}
	return w
}

func (w *market) record() Record {
	record := Record{Version: w.version, Usage: maps.Clone(w.usage)}
	if w.prefer {
		record.Nodes = w.nodes
	}
	return record
}

// step passes an event to a node, and carries out its commands.
func (w *market) step(i int, event Event) {
	for _, command := range w.machines[i].Step(event) {
		switch c := command.(type) {
		case Advertise:
			if c.Resource.Name == "cam" {
				w.lists[i] = nil
				for _, health := range c.List {
					if health.Healthy {
						w.lists[i] = append(w.lists[i], health.ID)
					}
				}
			}
		case Suggest:
			w.step(i, AllocateRequested{Call: 1, Resource: Resource{Name: "cam"}, IDs: c.IDs})
		case Claim:
			w.way[i] = append(w.way[i], func() { w.claim(i, c) })
		case Answer:
			if c.Err != nil {
				w.refused++
			} else {
				w.has[i] = append(w.has[i], c.Slots[0].Slot)
			}
			w.way[i] = append(w.way[i], func() { w.request(i) })
		}
	}
}

// request sends the next request of a kubelet.
func (w *market) request(i int) {
	available := slices.DeleteFunc(slices.Clone(w.lists[i]), func(id int) bool { return slices.Contains(w.has[i], id) })
	if w.waiting[i] > 0 && len(available) > 0 {
		w.waiting[i]--
		w.step(i, PreferenceAsked{Call: 1, Resource: Resource{Name: "cam"}, Available: available, Size: 1})
	}
}

// claim writes the owners if the slots are free. All nodes then learn it, at some time.
func (w *market) claim(i int, c Claim) {
	settled := ClaimSettled{Instance: "cam"}
	for number, owner := range c.Owners {
		settled.Slots = append(settled.Slots, number)
		if w.usage[number].Free() {
			w.usage[number] = owner
			w.version++
		} else {
			settled.Outcome = Refused
		}
	}
	record := w.record()
	settled.Record = &record
	w.way[i] = append(w.way[i], func() { w.step(i, settled) })
	for other := range w.machines {
		if other != i {
			w.way[other] = append(w.way[other], func() { w.step(other, InstanceRecorded{"cam", record}) })
		}
	}
}

// run lets kubelets request as many slots as are free, in a random order.
func (w *market) run() {
	for range w.capacity {
		w.waiting[w.rng.IntN(len(w.waiting))]++
	}
	for i := range w.machines {
		w.way[i] = append(w.way[i], func() { w.request(i) })
	}
	for {
		var busy []int
		for i := range w.way {
			if len(w.way[i]) > 0 {
				busy = append(busy, i)
			}
		}
		if len(busy) == 0 {
			return
		}
		i := busy[w.rng.IntN(len(busy))]
		next := w.way[i][0]
		w.way[i] = w.way[i][1:]
		next()
	}
}

// TestPreferencesSpread lets the kubelets of some nodes request all slots of a device at
// once. As every refusal leaves a slot free, none of them should be: two nodes cannot
// prefer the same slot, and more do so seldom.
func TestPreferencesSpread(t *testing.T) {
	for _, tc := range []struct {
		nodes, capacity int
		most            int // refusals of a thousand requests
	}{
		{2, 2, 0},
		{2, 5, 0},
		{2, 10, 0},
		{3, 5, 60},
		{3, 12, 30},
		{5, 5, 100},
		{5, 20, 60},
	} {
		requests, before, after := 0, 0, 0
		for seed := range uint64(50) {
			for _, prefer := range []bool{false, true} {
				w := newMarket(seed, tc.nodes, tc.capacity, prefer)
				w.run()
				if prefer {
					after += w.refused
					requests += tc.capacity
				} else {
					before += w.refused
				}
			}
		}
		t.Logf("%d nodes, %2d slots: of %d requests, %4.1f %% were refused without preferences, %4.2f %% with", tc.nodes, tc.capacity,
			requests, 100*float64(before)/float64(requests), 100*float64(after)/float64(requests))
		if after*1000 > tc.most*requests {
			t.Errorf("want at most %d of a thousand", tc.most)
		}
	}
}
