package publish

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

var (
	now    = time.Unix(1000, 0)
	camera = streams.Device{Key: streams.Key{ID: "foo0", Shared: true}, Properties: map[string]string{"URL": "rtsp://foo0"}}
)

func door() *v0.Configuration {
	return &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "door", UID: "configuration-1"},
		Spec:       v0.ConfigurationSpec{Capacity: 2, BrokerProperties: map[string]string{"OPERATOR": "me"}},
	}
}

func on(node string) nodeView { return nodeView{node: node, configuration: door(), now: now} }

// instance returns the camera's Instance as node-a writes it, with changes.
func instance(changes ...func(*v0.Instance)) *v0.Instance {
	made := intent(door(), camera, "node-a", "door-8120fe")
	made.UID, made.ResourceVersion = "instance-1", "5"
	for _, change := range changes {
		change(made)
	}
	return made
}

func nodes(names ...string) func(*v0.Instance) {
	return func(i *v0.Instance) {
		i.Spec.Nodes = names
		for _, name := range names {
			i.Labels[v0.NodeLabel(name)] = ""
		}
	}
}

func TestPresent(t *testing.T) {
	gone := metav1.NewTime(now)
	for name, tc := range map[string]struct {
		reason  string
		have    *v0.Instance
		differs time.Time
		node    string
		action  Action
		force   bool
		until   time.Time
		want    string // URL and capacity of what is applied
	}{
		"new": {
			reason: "without force: another agent may be creating it",
			node:   "node-a", action: Apply, want: "rtsp://foo0 2",
		},
		"matching": {
			reason: "no write at rest",
			have:   instance(), node: "node-a", action: Keep,
		},
		"matching, with another node": {
			reason: "an agent does not own the entries of other nodes",
			have:   instance(nodes("node-a", "node-b")), node: "node-a", action: Keep,
		},
		"edited by a user": {
			reason: "the author corrects it at once",
			have:   instance(func(i *v0.Instance) { i.Spec.Capacity = 9 }), node: "node-a", action: Apply, force: true, want: "rtsp://foo0 2",
		},
		"the device has changed": {
			reason: "the author writes the properties of the device",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.BrokerProperties["URL"] = "old" }),
			node:   "node-a", action: Apply, force: true, want: "rtsp://foo0 2",
		},
		"joining": {
			reason: "the Instance is kept, so that there is no conflict",
			have: instance(func(i *v0.Instance) {
				i.Spec.BrokerProperties["URL"] = "rtsp://as-node-a-sees-it"
				i.Spec.Capacity = 9
			}),
			node: "node-b", action: Apply, want: "rtsp://as-node-a-sees-it 9",
		},
		"the author sees the device differently": {
			reason: "the first writer wins",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.BrokerProperties["URL"] = "rtsp://as-node-a-sees-it" }),
			node:   "node-b", action: Keep,
		},
		"the author has not seen the new capacity": {
			reason: "it will soon; two agents must not correct each other in turns",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.Capacity = 9 }),
			node:   "node-b", action: Wait, until: now.Add(AuthorPatience),
		},
		"the author still has not seen it": {
			reason: "the author may be gone",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.Capacity, i.Spec.BrokerProperties["URL"] = 9, "seen" }),
			node:   "node-b", differs: now.Add(-AuthorPatience), action: Apply, force: true, want: "seen 2",
		},
		"the label was removed": {
			reason: "without the label the agent does not find the Instance again",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { delete(i.Labels, v0.NodeLabel("node-b")) }),
			node:   "node-b", action: Apply, force: true, want: "rtsp://foo0 2",
		},
		"being deleted": {
			reason: "it is created again after the deletion",
			have:   instance(func(i *v0.Instance) { i.DeletionTimestamp = &gone }), node: "node-a", action: Wait,
		},
		"of an earlier Configuration": {
			reason: "an Instance has only one controller",
			have:   instance(func(i *v0.Instance) { i.OwnerReferences[0].UID = "configuration-0" }), node: "node-a", action: Delete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := on(tc.node).present(camera, tc.have, "door-8120fe", tc.differs)
			if step.Action != tc.action || step.Force != tc.force || !step.Until.Equal(tc.until) {
				t.Fatalf(
					"%s\n got %s force=%t until %s\nwant %s force=%t until %s",
					tc.reason,
					step.Action,
					step.Force,
					step.Until,
					tc.action,
					tc.force,
					tc.until,
				)
			}
			if tc.action != Apply {
				return
			}
			spec := step.Want.Spec
			if got, _ := json.Marshal(spec.Capacity); spec.BrokerProperties["URL"]+" "+string(got) != tc.want {
				t.Errorf("%s\nwrites %s %s, want %s", tc.reason, spec.BrokerProperties["URL"], got, tc.want)
			}
			if len(spec.Nodes) != 1 || spec.Nodes[0] != tc.node || spec.DeviceUsage != nil {
				t.Errorf("writes nodes %v and slots %v, want its own entry and no slot", spec.Nodes, spec.DeviceUsage)
			}
		})
	}
}

func TestAbsent(t *testing.T) {
	here := on("node-a")
	if step := here.absent(instance()); step.Action != Delete {
		t.Errorf("the last node leaves: %s, want Delete", step.Action)
	}
	step := here.absent(instance(nodes("node-a", "node-b")))
	if step.Action != Leave {
		t.Fatalf("one of two nodes leaves: %s, want Leave", step.Action)
	}
	want := step.Want
	if _, labelled := want.Labels[v0.NodeLabel("node-a")]; labelled || len(want.Spec.Nodes) != 0 || want.Spec.DeviceUsage != nil ||
		want.UID != "instance-1" {
		t.Errorf("leaving writes %+v %+v; want no node, label or slots, and never a new object", want.ObjectMeta, want.Spec)
	}
	if want.Spec.Capacity != 2 || want.Spec.BrokerProperties["URL"] == "" || len(want.OwnerReferences) != 1 {
		t.Errorf("leaving removes what the other nodes need: %+v", want.Spec)
	}
}

func TestFind(t *testing.T) {
	here := on("node-a")
	long := v0.LongInstanceName("door", "foo0", "node-a", true)
	stranger := instance(func(i *v0.Instance) { i.Annotations[v0.AnnotationDeviceID] = "with the same hash" })
	if found, name := here.find(camera, nil); found != nil || name != "door-8120fe" {
		t.Errorf("no Instance: %v %s", found, name)
	}
	if found, name := here.find(camera, []*v0.Instance{stranger}); found != nil || name != long {
		t.Errorf("the name is taken: %v %s, want %s", found, name, long)
	}
	own := instance(func(i *v0.Instance) { i.Name = long })
	for _, have := range [][]*v0.Instance{{stranger, own}, {own, stranger}} {
		if found, name := here.find(camera, have); found != own || name != long {
			t.Errorf("both Instances: %v %s", found, name)
		}
	}
	unmarked := instance(func(i *v0.Instance) { i.Annotations = nil })
	if found, _ := here.find(camera, []*v0.Instance{unmarked}); found != unmarked {
		t.Error("an Instance that another program created is not recognised by its name")
	}
}

func TestSlotPatch(t *testing.T) {
	type usage = map[string]v0.SlotOwner
	for name, tc := range map[string]struct {
		usage usage
		want  string
	}{
		"new": {nil, `[{"op":"test","path":"/spec/deviceUsage","value":null},` +
			`{"op":"add","path":"/spec/deviceUsage","value":{"door-8120fe-0":"","door-8120fe-1":""}}]`},
		"all listed": {usage{"door-8120fe-0": "", "door-8120fe-1": "node-a"}, `null`},
		"claimed before it was listed": {usage{"door-8120fe-1": "node-a"},
			`[{"op":"test","path":"/spec/deviceUsage/door-8120fe-0","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage/door-8120fe-0","value":""}]`},
		"beyond the capacity": {usage{"door-8120fe-0": "", "door-8120fe-1": "", "door-8120fe-2": "node-a", "door-8120fe-3": ""},
			`[{"op":"test","path":"/spec/deviceUsage/door-8120fe-3","value":""},` +
				`{"op":"remove","path":"/spec/deviceUsage/door-8120fe-3","value":null}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(slotPatch(instance(func(i *v0.Instance) { i.Spec.DeviceUsage = tc.usage })))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}
