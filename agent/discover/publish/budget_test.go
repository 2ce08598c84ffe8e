package publish

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// The largest Configuration that is sensible must fit: as many devices as one may have,
// with ten slots and twenty properties each.
func TestTheBudgetIsSufficient(t *testing.T) {
	c := costOf(10, withProperties("cam", 20, 40).Properties, map[string]string{"OPERATOR": "me"})
	all := cost{v0.MaxDevices * c.devices, v0.MaxDevices * c.slots, v0.MaxDevices * c.bytes}
	if all.max(namespaceLimit) != namespaceLimit {
		t.Errorf("%d devices cost %+v, but a namespace has %+v", v0.MaxDevices, all, namespaceLimit)
	}
	if both := namespaceLimit.plus(namespaceLimit); both.max(nodeLimit) != nodeLimit {
		t.Errorf("one namespace may have %+v, and leaves too little of %+v to another", namespaceLimit, nodeLimit)
	}
}

func TestCost(t *testing.T) {
	for name, test := range map[string]struct {
		capacity        int32
		own, configured map[string]string
		want            cost
	}{
		"the least":                  {0, nil, nil, cost{1, 1, 0}},
		"a capacity beyond the most": {30_000, nil, nil, cost{1, v0.MaxSlots, 0}},
		"bytes, not characters":      {2, map[string]string{"Ä": "€"}, nil, cost{1, 2, propertyBytes + 5}},
		"an empty property":          {1, map[string]string{"A": ""}, nil, cost{1, 1, propertyBytes + 1}},
		"one that is overridden":     {1, map[string]string{"A": "long"}, map[string]string{"A": "b"}, cost{1, 1, propertyBytes + 2}},
	} {
		if got := costOf(test.capacity, test.own, test.configured); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A node has room for 8 devices, 80 slots and 80 properties "A" with one byte, and a
// namespace for half of that.
func smallBudget() *budget {
	b := newBudget()
	b.node = cost{8, 80, 80 * (propertyBytes + 2)}
	b.namespace = b.node.combine(cost{2, 2, 2}, func(a, half int) int { return a / half })
	return b
}

// decision is one Configuration that is published.
type decision struct {
	name     string // NAMESPACE/NAME
	capacity int32
	devices  int
	// existing devices, the last ones, have an Instance with a capacity; adopted ones, too,
	// but no handler has reported them.
	existing, adopted int
	having            int32
	properties        map[string]string
	author            string // of the existing ones; this node if empty
}

func (d decision) here() nodeView {
	namespace, name, _ := strings.Cut(d.name, "/")
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	configuration.Spec.Capacity, configuration.Spec.BrokerProperties = d.capacity, d.properties
	return nodeView{node: "node-a", configuration: configuration}
}

func (d decision) key() types.NamespacedName {
	return types.NamespacedName{Namespace: d.here().configuration.Namespace, Name: d.here().configuration.Name}
}

func (d decision) instances() (existing, adopted []*v0.Instance) {
	for i := range d.existing + d.adopted {
		id := fmt.Sprintf("cam-%02d", d.devices-d.existing+i)
		instance := intent(d.here().configuration, withProperties(id, 0, 0), "node-a", v0.InstanceName(d.key().Name, id, "node-a", false))
		instance.Spec.Capacity = d.having
		if d.author != "" {
			instance.Spec.Nodes = []string{d.author, "node-a"}
		}
		if i < d.existing {
			existing = append(existing, instance)
		} else {
			adopted = append(adopted, instance)
		}
	}
	return existing, adopted
}

// decide returns how many devices are published as wanted, stay as they are, and are
// offered although no handler reports them; and the reasons.
func (b *budget) decide(d decision) (wanted, same, adopted int, reasons []string, again []types.NamespacedName) {
	existing, adoptable := d.instances()
	list := known()
	for i := range d.devices {
		list = append(list, known(withProperties(fmt.Sprintf("cam-%02d", i), 0, 0))...)
	}
	candidates := d.here().candidates(list, existing)
	again = b.settle(d.key(), func(a *account) {
		fitting, shortage := d.here().allot(a, candidates, adoptable)
		adopted = len(fitting)
		if shortage != "" {
			reasons = append(reasons, shortage)
		}
	})
	for _, c := range candidates {
		switch {
		case c.refused == "":
			wanted++
		case c.have != nil && !c.withheld:
			same++
		}
	}
	return wanted, same, adopted, append(refusals(candidates), reasons...), again
}

func TestBudget(t *testing.T) {
	for name, test := range map[string]struct {
		others    []decision // published before
		reserved  []decision // have Instances, and were not published since the start
		published decision
		want      string // published as wanted, as they are, adopted
		says      string
	}{
		"everything fits": {published: decision{name: "a/cam", capacity: 10, devices: 4}, want: "4 0 0"},
		"too many devices": {
			published: decision{name: "a/cam", capacity: 1, devices: 6},
			want:      "4 0 0", says: "namespace a may have 4 devices",
		},
		"too many slots": {
			published: decision{name: "a/cam", capacity: 15, devices: 4},
			want:      "2 0 0", says: "may have 40 slots on one node: reduce capacity",
		},
		"no slot for any": {
			published: decision{name: "a/cam", capacity: 1000, devices: 2},
			want:      "0 0 0", says: `device "cam-00" is not published: the`,
		},
		"properties are too many": {
			published: decision{name: "a/cam", devices: 3, properties: withProperties("", 30, 0).Properties},
			want:      "1 0 0", says: "bytes of properties on one node: shorten",
		},
		"another Configuration of the namespace": {
			others:    []decision{{name: "a/door", capacity: 1, devices: 3}},
			published: decision{name: "a/cam", capacity: 1, devices: 3}, want: "1 0 0", says: "namespace a may have 4 devices",
		},
		"a namespace leaves half to others": {
			others:    []decision{{name: "a/door", capacity: 10, devices: 9}, {name: "a/gate", capacity: 1, devices: 9}},
			published: decision{name: "b/cam", capacity: 10, devices: 4}, want: "4 0 0",
		},
		"the node is full": {
			others:    []decision{{name: "a/door", capacity: 10, devices: 4}, {name: "b/gate", capacity: 10, devices: 3}},
			published: decision{name: "c/cam", capacity: 1, devices: 3}, want: "1 0 0",
			says: "all Configurations may have 8 devices on one node",
		},
		"a Configuration that is published again counts once": {
			others:    []decision{{name: "a/cam", capacity: 10, devices: 4}},
			published: decision{name: "a/cam", capacity: 10, devices: 4, existing: 4, having: 10}, want: "4 0 0",
		},
		"those with an Instance come first": {
			published: decision{name: "a/cam", capacity: 20, devices: 4, existing: 2, having: 20}, want: "2 0 0",
			says: `device "cam-00" is not published`,
		},
		"a capacity that does not fit is not set": {
			published: decision{name: "a/cam", capacity: 1000, devices: 4, existing: 4, having: 1}, want: "0 4 0",
			says: `device "cam-00" does not get its new capacity and properties: the Configurations of namespace a may have 40 slots`,
		},
		"some of the changes fit": {
			published: decision{name: "a/cam", capacity: 15, devices: 4, existing: 4, having: 5}, want: "2 2 0",
			says: `"cam-02" does not get`,
		},
		"a change comes before a new device": {
			published: decision{name: "a/cam", capacity: 20, devices: 3, existing: 2, having: 1}, want: "2 0 0",
			says: `"cam-00" is not published`,
		},
		"a lower capacity always fits": {
			published: decision{name: "a/cam", capacity: 10, devices: 4, existing: 4, having: 1000}, want: "4 0 0",
		},
		"what an Instance has beyond the limit is not offered": {
			published: decision{name: "a/cam", capacity: 1000, devices: 4, existing: 4, having: 30}, want: "0 1 0",
			says: `"cam-01" is not offered`,
		},
		"the same, before its handler has reported": {
			published: decision{name: "a/cam", capacity: 1000, adopted: 4, having: 30}, want: "0 0 1",
			says: "are not offered: the Configurations of",
		},
		"a capacity that another author has raised": {
			published: decision{name: "a/cam", capacity: 20, devices: 2, existing: 2, having: 20, author: "node-b"}, want: "2 0 0",
		},
		"Instances that exist at the start keep their room": {
			reserved:  []decision{{name: "a/door", existing: 3, having: 1}},
			published: decision{name: "a/cam", capacity: 1, devices: 3}, want: "1 0 0", says: "namespace a may have 4 devices",
		},
		"those beyond the limit of their namespace take no room of another": {
			reserved:  []decision{{name: "a/door", existing: 9, having: 1000}},
			published: decision{name: "b/cam", capacity: 10, devices: 4, existing: 4, having: 10}, want: "4 0 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := smallBudget()
			for _, d := range test.reserved {
				existing, _ := d.instances()
				b.reserve(existing)
			}
			for _, d := range test.others {
				b.decide(d)
			}
			wanted, same, adopted, reasons, _ := b.decide(test.published)
			if got := fmt.Sprintf("%d %d %d", wanted, same, adopted); got != test.want {
				t.Errorf("%s are published as wanted, as they are, and adopted; want %s", got, test.want)
			}
			if all := strings.Join(reasons, "; "); test.says == "" && all != "" || !strings.Contains(all, test.says) {
				t.Errorf("the reasons are %q, want %q", all, test.says)
			}
			if left := b.account(types.NamespacedName{Namespace: "new"}).node; left.min(cost{}) != (cost{}) {
				t.Errorf("more is spent than there is: %+v are left", left)
			}
		})
	}
}

// A Configuration that waits is published when another costs less, and only then.
func TestBudgetHasRoomAgain(t *testing.T) {
	b := smallBudget()
	waiting := decision{name: "a/cam", capacity: 1, devices: 2}
	for _, step := range []struct {
		why     string
		publish decision
		again   bool
	}{
		{"nobody waits", decision{name: "a/door", capacity: 1, devices: 4}, false},
		{"it waits itself", waiting, false},
		{"it still does", waiting, false},
		{"nothing has changed", decision{name: "a/door", capacity: 1, devices: 4, existing: 4, having: 1}, false},
		{"more slots make no room", decision{name: "a/door", capacity: 2, devices: 4, existing: 4, having: 1}, false},
		{"a device has left", decision{name: "a/door", capacity: 2, devices: 3, existing: 3, having: 2}, true},
		{"it waits for another one", waiting, false},
		{"the other Configuration is gone", decision{name: "a/door"}, true},
		{"it has what it wants", waiting, false},
		{"nobody waits any more", decision{name: "b/gate"}, false},
	} {
		_, _, _, _, again := b.decide(step.publish)
		if slices.Contains(again, waiting.key()) != step.again || len(again) > 1 {
			t.Fatalf("%s: %v are published again, want the one that waits: %v", step.why, again, step.again)
		}
	}
	if len(b.spent) != 1 || len(b.waiting) != 0 {
		t.Errorf("the budget remembers %v and %v, want one Configuration", b.spent, b.waiting)
	}
}

// On a real API server: devices that do not fit are not published, changes that do not
// fit are not written, and a new agent comes to the same decisions.
func TestPublishWithinTheBudget(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	p.budget = smallBudget()
	var retried []types.NamespacedName
	p.WhenRoom(func(name types.NamespacedName) { retried = append(retried, name) })
	b.configuration.Spec.Capacity = 20
	first, second, third := withProperties("first", 1, 1), withProperties("second", 1, 1), withProperties("third", 1, 1)
	if result := b.publish(p, second, third); len(result.Devices) != 2 || len(result.Refused) != 0 {
		t.Fatalf("%d devices are published, and refused: %q", len(result.Devices), result.Refused)
	}
	if result := b.publish(p, first, second, third); len(result.Devices) != 2 || len(result.Refused) != 1 {
		t.Errorf("%d devices are published, and refused: %q", len(result.Devices), result.Refused)
	}
	b.configuration.Spec.Capacity = 1000
	if result := b.publish(p, second, third); len(result.Devices) != 2 || result.Devices[0].Capacity != 20 || len(result.Refused) != 2 {
		t.Errorf("offered: %+v, refused: %q", result.Devices, result.Refused)
	}
	if have := b.get(v0.InstanceName("door", "second", "node-a", false)); have.Spec.Capacity != 20 {
		t.Errorf("a capacity of %d is written", have.Spec.Capacity)
	}

	restarted := b.publisher("node-a")
	restarted.budget = smallBudget()
	other := *b
	other.configuration = b.configuration.DeepCopy()
	other.configuration.Name = "gate"
	if result := other.publish(restarted, first); len(result.Devices) != 0 || len(result.Refused) != 1 {
		t.Errorf("a new device gets the room of Instances: %d, %q", len(result.Devices), result.Refused)
	}
	restarted.WhenRoom(func(name types.NamespacedName) { retried = append(retried, name) })
	if _, err := restarted.Withdraw(t.Context(), b.name(), true); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(retried, []types.NamespacedName{{Namespace: b.name().Namespace, Name: "gate"}}) {
		t.Errorf("published again: %v", retried)
	}
}
