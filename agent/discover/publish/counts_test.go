package publish

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// The largest Configuration that is sensible fits, and leaves as much to another.
func TestTheLimitsAreSufficient(t *testing.T) {
	if sensible := (count{v0.MaxDevices, 10 * v0.MaxDevices}); configurationLimit != sensible || nodeLimit != sensible.plus(sensible) {
		t.Errorf("a Configuration may have %+v, and all %+v", configurationLimit, nodeLimit)
	}
}

// smallCounts are those of a node with 8 devices and 80 slots, and half of that for a
// Configuration.
func smallCounts(existing ...*v0.Instance) *counts {
	return &counts{configuration: count{4, 40}, node: count{8, 80}, existing: func() []*v0.Instance { return existing }}
}

// decision is a pass of one Configuration.
type decision struct {
	name     string
	capacity int32
	devices  int
	// existing devices, the last ones, have an Instance with a capacity; kept ones, too, but
	// no handler has reported them.
	existing, kept int
	having         int32
}

func (d decision) here() nodeView {
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Name: d.name}}
	configuration.Spec.Capacity = d.capacity
	return nodeView{node: "node-a", configuration: configuration}
}

func (d decision) instances() (existing, kept []*v0.Instance) {
	for i := range d.existing + d.kept {
		id := fmt.Sprintf("cam-%02d", d.devices-d.existing+i)
		instance := intent(d.here().configuration, withProperties(id, 0, 0), "node-a", v0.InstanceName(d.name, id, "node-a", false))
		instance.Spec.Capacity = d.having
		if i < d.existing {
			existing = append(existing, instance)
		} else {
			kept = append(kept, instance)
		}
	}
	return existing, kept
}

// decide returns how many devices are published as wanted, stay as they are, and are
// offered although no handler reports them; the reasons; and whether the node is full.
func (c *counts) decide(d decision) (numbers, reasons string, full bool) {
	existing, kept := d.instances()
	list := known()
	for i := range d.devices {
		list = append(list, known(withProperties(fmt.Sprintf("cam-%02d", i), 0, 0))...)
	}
	candidates := d.here().candidates(list, existing)
	fitting, shortage, full := c.fit(d.here(), candidates, kept)
	wanted, same := 0, 0
	for _, c := range candidates {
		switch {
		case c.refused == "":
			wanted++
		case c.have != nil && !c.withheld:
			same++
		}
	}
	return fmt.Sprintf("%d %d %d", wanted, same, len(fitting)), strings.Join(append(refusals(candidates), shortage), "; "), full
}

func TestCounts(t *testing.T) {
	for name, test := range map[string]struct {
		others    []decision // published before
		reserved  decision   // has Instances, and was not published since the start
		published decision
		want      string // published as wanted, as they are, kept
		says      string
	}{
		"everything fits": {published: decision{name: "cam", capacity: 10, devices: 4}, want: "4 0 0"},
		"too many devices": {
			published: decision{name: "cam", capacity: 1, devices: 6},
			want:      "4 0 0", says: `device "cam-04" is not published: a Configuration may have at most 4 devices on one node: restrict`,
		},
		"too many slots": {
			published: decision{name: "cam", capacity: 15, devices: 4},
			want:      "2 0 0", says: "a Configuration may have at most 40 slots on one node: reduce capacity",
		},
		"no slot for any": {
			published: decision{name: "cam", capacity: 1000, devices: 2},
			want:      "0 0 0", says: `device "cam-00" is not published: a`,
		},
		"a Configuration leaves half to others": {
			others:    []decision{{name: "door", capacity: 10, devices: 9}},
			published: decision{name: "cam", capacity: 10, devices: 4}, want: "4 0 0",
		},
		"the node is full": {
			others:    []decision{{name: "door", capacity: 10, devices: 4}, {name: "gate", capacity: 10, devices: 3}},
			published: decision{name: "cam", capacity: 1, devices: 3}, want: "1 0 0",
			says: "all Configurations together may have at most 8 devices on one node",
		},
		"the node has no slot": {
			others:    []decision{{name: "door", capacity: 40, devices: 1}, {name: "gate", capacity: 39, devices: 1}},
			published: decision{name: "cam", capacity: 1, devices: 3}, want: "1 0 0",
			says: "all Configurations together may have at most 80 slots on one node: reduce",
		},
		"a Configuration that is published again counts once": {
			others:    []decision{{name: "cam", capacity: 10, devices: 4}},
			published: decision{name: "cam", capacity: 10, devices: 4, existing: 4, having: 10}, want: "4 0 0",
		},
		"those with an Instance come first": {
			published: decision{name: "cam", capacity: 20, devices: 4, existing: 2, having: 20}, want: "2 0 0",
			says: `device "cam-00" is not published`,
		},
		"a capacity that does not fit is not set": {
			published: decision{name: "cam", capacity: 1000, devices: 4, existing: 4, having: 1}, want: "0 4 0",
			says: `device "cam-00" is not changed to the new capacity: a Configuration may have at most 40 slots`,
		},
		"some of the changes fit": {
			published: decision{name: "cam", capacity: 15, devices: 4, existing: 4, having: 5}, want: "2 2 0",
			says: `"cam-02" is not changed`,
		},
		"a change comes before a new device": {
			published: decision{name: "cam", capacity: 20, devices: 3, existing: 2, having: 1}, want: "2 0 0",
			says: `"cam-00" is not published`,
		},
		"a lower capacity always fits": {
			published: decision{name: "cam", capacity: 10, devices: 4, existing: 4, having: 1000}, want: "4 0 0",
		},
		"what an Instance has beyond the limit is not offered": {
			published: decision{name: "cam", capacity: 1000, devices: 4, existing: 4, having: 30}, want: "0 1 0",
			says: `"cam-01" is not offered`,
		},
		"the same, before its handler has reported": {
			published: decision{name: "cam", capacity: 1000, kept: 4, having: 30}, want: "0 0 1",
			says: "are not offered: a Configuration may",
		},
		"Instances that exist at the start keep their places": {
			reserved:  decision{name: "door", existing: 6, having: 1},
			published: decision{name: "cam", capacity: 1, devices: 3}, want: "2 0 0", says: "all Configurations together may have at most 8 devices",
		},
		"those beyond the limit of the node leave nothing": {
			reserved:  decision{name: "door", existing: 9, having: 1},
			published: decision{name: "cam", capacity: 10, devices: 4, existing: 2, having: 10}, want: "0 0 0", says: "is not offered: all",
		},
	} {
		t.Run(name, func(t *testing.T) {
			existing, _ := test.reserved.instances()
			c := smallCounts(existing...)
			for _, d := range test.others {
				c.decide(d)
			}
			numbers, reasons, full := c.decide(test.published)
			if numbers != test.want {
				t.Errorf("%s are published as wanted, as they are, and kept; want %s", numbers, test.want)
			}
			if test.says == "" && reasons != "" || !strings.Contains(reasons, test.says) {
				t.Errorf("the reasons are %q, want %q", reasons, test.says)
			}
			if full != strings.Contains(test.says, "all") {
				t.Errorf("the node is full: %v, and the reasons are %q", full, reasons)
			}
		})
	}
}

// On a real API server: devices that do not fit are not published, changes that do not fit
// are not written, and a new agent comes to the same decisions. When others have left, the
// devices that the node had no place for are published.
func TestPublishWithinTheCounts(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	p.counts.configuration, p.counts.node = count{2, 40}, count{2, 40}
	b.configuration.Spec.Capacity = 20
	first, second, third := withProperties("first", 1, 1), withProperties("second", 1, 1), withProperties("third", 1, 1)
	if result := b.publish(p, second, third); len(result.Devices) != 2 || len(result.Refused) != 0 {
		t.Fatalf("%d devices are published, and refused: %q", len(result.Devices), result.Refused)
	}
	if result := b.publish(p, first, second, third); len(result.Devices) != 2 || len(result.Refused) != 1 || !result.Next.IsZero() {
		t.Errorf("%d devices are published, and refused: %q, again at %s", len(result.Devices), result.Refused, result.Next)
	}
	b.configuration.Spec.Capacity = 1000
	if result := b.publish(p, second, third); len(result.Devices) != 2 || result.Devices[0].Capacity != 20 || len(result.Refused) != 2 {
		t.Errorf("offered: %+v, refused: %q", result.Devices, result.Refused)
	}
	if have := b.get(v0.InstanceName("door", "second", "node-a", false)); have.Spec.Capacity != 20 {
		t.Errorf("a capacity of %d is written", have.Spec.Capacity)
	}
	p.counts.configuration = count{1, 40}
	if result := b.publish(p, second, third); len(result.Devices) != 1 || len(result.Refused) != 2 {
		t.Errorf("what is over the limit is offered: %+v, refused: %q", result.Devices, result.Refused)
	}

	restarted := b.publisher("node-a")
	restarted.counts.configuration, restarted.counts.node = count{2, 40}, count{2, 40}
	other := *b
	other.configuration = b.configuration.DeepCopy()
	other.configuration.Name, other.configuration.Spec.Capacity = "gate", 20
	if result := other.publish(restarted, first); len(result.Devices) != 0 || len(result.Refused) != 1 || result.Next.IsZero() {
		t.Errorf("a new device gets the place of an Instance: %d, %q, again at %s", len(result.Devices), result.Refused, result.Next)
	}
	if _, err := restarted.Withdraw(t.Context(), b.name(), true); err != nil {
		t.Fatal(err)
	}
	if result := other.publish(restarted, first); len(result.Devices) != 1 || len(result.Refused) != 0 || !result.Next.IsZero() {
		t.Errorf("%d devices are published, and refused: %q, again at %s", len(result.Devices), result.Refused, result.Next)
	}
}
