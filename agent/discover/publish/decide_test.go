package publish

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
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
	made.Spec.DeviceUsage = map[string]v0.SlotOwner{}
	for _, change := range changes {
		change(made)
	}
	return made
}

func nodes(names ...string) func(*v0.Instance) {
	return func(i *v0.Instance) {
		delete(i.Labels, v0.NodeLabel("node-a"))
		i.Spec.Nodes = names
		for _, name := range names {
			i.Labels[v0.NodeLabel(name)] = ""
		}
	}
}

// labels adds the labels of nodes.
func labels(names ...string) func(*v0.Instance) {
	return func(i *v0.Instance) {
		for _, name := range names {
			i.Labels[v0.NodeLabel(name)] = ""
		}
	}
}

// owners sets the owners of the slots 0, 1 and so on.
func owners(list ...string) func(*v0.Instance) {
	return func(i *v0.Instance) {
		for slot, owner := range list {
			i.Spec.DeviceUsage[v0.SlotName(i.Name, slot)] = v0.SlotOwner(owner)
		}
	}
}

func TestPresent(t *testing.T) {
	gone := metav1.NewTime(now)
	const (
		author  = `{"op":"test","path":"/spec/nodes/0","value":"node-a"}`
		version = `{"op":"test","path":"/metadata/resourceVersion","value":"5"}`
	)
	for name, tc := range map[string]struct {
		reason string
		have   *v0.Instance
		node   string
		action Action
		patch  string
	}{
		"new": {
			reason: "another agent may be creating it, which makes the creation fail",
			node:   "node-a", action: Create,
		},
		"matching": {
			reason: "no write at rest",
			have:   instance(), node: "node-a", action: Keep,
		},
		"matching, with another node": {
			reason: "an agent does not correct the entries of other nodes",
			have:   instance(nodes("node-a", "node-b")), node: "node-a", action: Keep,
		},
		"edited by a user": {
			reason: "the author corrects it at once, if it still is the author",
			have:   instance(func(i *v0.Instance) { i.Spec.Capacity = 9 }), node: "node-a", action: Update,
			patch: author + `,{"op":"replace","path":"/spec/capacity","value":2}`,
		},
		"the device has changed": {
			reason: "the author writes the properties of the device",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.BrokerProperties["URL"] = "old" }),
			node:   "node-a", action: Update,
			patch: author + `,{"op":"add","path":"/spec/brokerProperties","value":{"OPERATOR":"me","URL":"rtsp://foo0"}}` +
				`,{"op":"add","path":"/spec/lastChangeTime","value":"1970-01-01T00:16:40Z"}`,
		},
		"joining": {
			reason: "a node that joins adds its entry and its label, and nothing else",
			have: instance(func(i *v0.Instance) {
				i.Spec.BrokerProperties["URL"] = "rtsp://as-node-a-sees-it"
				i.Spec.Capacity = 9
			}),
			node: "node-b", action: Update,
			patch: version + `,{"op":"add","path":"/spec/nodes/-","value":"node-b"},` +
				`{"op":"add","path":"/metadata/labels/node.akri.sh~1node-b","value":""}`,
		},
		"joining while a container still has a slot": {
			reason: "the node has left the list, but not the selection",
			have:   instance(nodes("node-a"), labels("node-b"), owners("", "node-b")), node: "node-b", action: Update,
			patch: version + `,{"op":"add","path":"/spec/nodes/-","value":"node-b"}`,
		},
		"joining what nobody sees": {
			reason: "the first to join is the author",
			have:   instance(func(i *v0.Instance) { i.Spec.Nodes, i.Labels, i.Spec.Capacity = nil, nil, 9 }), node: "node-b", action: Update,
			patch: `{"op":"test","path":"/spec/nodes","value":null},{"op":"replace","path":"/spec/capacity","value":2},` + version +
				`,{"op":"test","path":"/spec/nodes","value":null},{"op":"add","path":"/spec/nodes","value":["node-b"]},` +
				`{"op":"test","path":"/metadata/labels","value":null},` +
				`{"op":"add","path":"/metadata/labels","value":{"akri.sh/configuration":"door","node.akri.sh/node-b":""}}`,
		},
		"the author sees the device differently": {
			reason: "the first writer wins",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.BrokerProperties["URL"] = "rtsp://as-node-a-sees-it" }),
			node:   "node-b", action: Keep,
		},
		"the author has not seen the new capacity": {
			reason: "only the author corrects it; two agents must not correct each other in turns",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.Spec.Capacity = 9 }),
			node:   "node-b", action: Keep,
		},
		"the author has left": {
			reason: "the next node is the author",
			have:   instance(nodes("node-b", "node-c"), func(i *v0.Instance) { i.Spec.Capacity = 9 }),
			node:   "node-b", action: Update,
			patch: `{"op":"test","path":"/spec/nodes/0","value":"node-b"},{"op":"replace","path":"/spec/capacity","value":2}`,
		},
		"the label was removed": {
			reason: "without the label the agent does not find the Instance again",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { delete(i.Labels, v0.NodeLabel("node-b")) }),
			node:   "node-b", action: Update, patch: `{"op":"add","path":"/metadata/labels/node.akri.sh~1node-b","value":""}`,
		},
		"the owner was edited": {
			reason: "garbage collection deletes what has no owner that exists",
			have:   instance(func(i *v0.Instance) { i.OwnerReferences[0].Controller = nil }), node: "node-a", action: Update,
			patch: author + `,{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"configuration-1"},{"op":"replace",` +
				`"path":"/metadata/ownerReferences/0","value":{"apiVersion":"akri.sh/v0","kind":"Configuration","name":"door",` +
				`"uid":"configuration-1","controller":true}}`,
		},
		"the owner is missing": {
			reason: "the Configuration was deleted with --cascade=orphan, and created again",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.OwnerReferences = nil }), node: "node-a", action: Update,
			patch: author + `,{"op":"test","path":"/metadata/ownerReferences","value":null},{"op":"add","path":"/metadata/ownerReferences",` +
				`"value":[{"apiVersion":"akri.sh/v0","kind":"Configuration","name":"door","uid":"configuration-1","controller":true}]}`,
		},
		"the owner is missing, and another node is the author": {
			reason: "the policy for agents lets nobody but the author add one",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.OwnerReferences = nil }), node: "node-b", action: Keep,
		},
		"being deleted": {
			reason: "it is created again after the deletion",
			have:   instance(func(i *v0.Instance) { i.DeletionTimestamp = &gone }), node: "node-a", action: Wait,
		},
		"of an earlier Configuration": {
			reason: "an Instance has only one controller",
			have:   instance(func(i *v0.Instance) { i.OwnerReferences[0].UID = "configuration-0" }), node: "node-a", action: Delete,
		},
		"of an earlier Configuration, seen by another node": {
			reason: "garbage collection deletes it; the API server would refuse it to the agent, which is no failure of the device",
			have:   instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.OwnerReferences[0].UID = "configuration-0" }),
			node:   "node-a", action: Wait,
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := on(tc.node).present(camera, tc.have, "door-8120fe")
			if step.Action != tc.action || encoded(step.Patch) != tc.patch {
				t.Fatalf("%s\n got %s %s\nwant %s %s", tc.reason, step.Action, encoded(step.Patch), tc.action, tc.patch)
			}
		})
	}
}

// The files of a device that only one node has are a property, which templates can use.
func TestDevicePathsAreAProperty(t *testing.T) {
	files := func(paths ...string) (list []device.File) {
		for _, path := range paths {
			list = append(list, device.File{ContainerPath: path, HostPath: path})
		}
		return list
	}
	own := map[string]string{v0.PropertyDevicePaths: "its own"}
	for name, tc := range map[string]struct {
		device streams.Device
		of     map[string]string // brokerProperties
		want   string
	}{
		"several files":             {device: streams.Device{Files: files("/dev/b", "/dev/a", "/dev/b")}, want: "/dev/a,/dev/b"},
		"no file":                   {},
		"a shared device":           {device: streams.Device{Key: streams.Key{Shared: true}, Files: files("/dev/b")}},
		"a handler that says so":    {device: streams.Device{Properties: own, Files: files("/dev/b")}, want: "its own"},
		"a Configuration that does": {device: streams.Device{Files: files("/dev/b")}, of: own, want: "its own"},
	} {
		configuration := door()
		configuration.Spec.BrokerProperties = tc.of
		if got := intent(configuration, tc.device, "node-a", "x").Spec.BrokerProperties[v0.PropertyDevicePaths]; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// An Instance says which device files containers got before they changed, and until when.
func TestFormerDevicePaths(t *testing.T) {
	stick := camera
	stick.Shared, stick.Properties = false, map[string]string{v0.PropertyDevicePaths: "/dev/c"}
	for name, tc := range map[string]struct {
		have, before, node, want string
	}{
		"the first change": {have: "/dev/a", node: "node-a", want: "1970-01-01T00:16:40Z /dev/a"},
		"a further change": {
			have: "/dev/b", before: "X /dev/a", node: "node-a", want: "1970-01-01T00:16:40Z /dev/b",
		},
		"no change":                         {have: "/dev/c", before: "X /dev/a", node: "node-a", want: "X /dev/a"},
		"an Instance of an earlier agent":   {have: "", node: "node-a", want: ""},
		"another node describes the device": {have: "/dev/a", node: "node-b", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			have := instance(nodes("node-a", "node-b"), func(i *v0.Instance) {
				i.Spec.BrokerProperties = map[string]string{v0.PropertyDevicePaths: tc.have}
				i.Annotations[v0.AnnotationFormerDevicePaths] = tc.before
			})
			here := on(tc.node)
			here.now = now
			step := here.present(stick, have, have.Name)
			for _, operation := range step.Patch {
				if operation.Path == annotationsPath+jsonpatch.Pointer(v0.AnnotationFormerDevicePaths) {
					have.Annotations[v0.AnnotationFormerDevicePaths] = operation.Value.(string)
				}
			}
			if got := have.Annotations[v0.AnnotationFormerDevicePaths]; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// encoded returns the operations of a patch, or "".
func encoded(patch jsonpatch.Patch) string {
	if len(patch) == 0 {
		return ""
	}
	return strings.Trim(string(patch.Encode()), "[]")
}

// Another node's agent writes what an Instance says. This node's containers get what
// the Configuration sets nevertheless.
func TestTheConfigurationTakesPrecedence(t *testing.T) {
	have := instance(nodes("node-b", "node-a"), func(i *v0.Instance) {
		i.Spec.Capacity, i.Spec.BrokerProperties = 1000, map[string]string{"URL": "seen", "OPERATOR": "evil"}
	})
	online := camera
	online.Online = true
	got := published(door(), have, online)
	if got.Capacity != 2 || got.Properties["OPERATOR"] != "me" || got.Properties["URL"] != "seen" {
		t.Errorf("offers capacity %d and %v, want 2, the Configuration's OPERATOR and the device's URL", got.Capacity, got.Properties)
	}
	if have.Spec.BrokerProperties["OPERATOR"] != "evil" {
		t.Error("the Instance in the cache was changed")
	}
}

func TestAbsent(t *testing.T) {
	const (
		version = `{"op":"test","path":"/metadata/resourceVersion","value":"5"}`
		entry   = version + `,{"op":"remove","path":"/spec/nodes/0","value":null}`
		label   = `,{"op":"remove","path":"/metadata/labels/node.akri.sh~1node-a","value":null}`
	)
	local := func(i *v0.Instance) { i.Spec.Shared = false }
	for name, tc := range map[string]struct {
		reason    string
		have      *v0.Instance
		collected bool
		action    Action
		patch     string
	}{
		"the last node": {reason: "nobody sees the device", have: instance(), action: Delete},
		"the last node, whose container has a slot": {
			reason: "another node that finds the device must not be given the slot; the controller deletes the broker",
			have:   instance(owners("node-a")), action: Leave, patch: entry,
		},
		"a local device in use": {reason: "no other node can use it", have: instance(local, owners("C:0:node-a")), action: Delete},
		"one of two": {
			reason: "it leaves the list and the selection",
			have:   instance(nodes("node-a", "node-b")), action: Leave, patch: entry + label,
		},
		"one of two, while another node has a slot": {
			reason: "another node's claim is its own affair",
			have:   instance(nodes("node-a", "node-b"), owners("node-b")), action: Leave,
			patch: entry + label,
		},
		"one of two, whose container has a slot": {
			reason: "its agent must find the Instance until it has released the slot",
			have:   instance(nodes("node-a", "node-b"), owners("node-a")), action: Leave, patch: entry,
		},
		"one of two, whose container has a slot through the Configuration": {
			reason: "a claim through the Configuration's resource is a claim",
			have:   instance(nodes("node-a", "node-b"), owners("", "C:0:node-a")), action: Leave, patch: entry,
		},
		"it has left the list and has a slot": {
			reason: "the slot is released first", have: instance(nodes("node-b"), labels("node-a"), owners("node-a")), action: Wait,
		},
		"it has left the list and released its slot": {
			reason: "now it leaves the selection",
			have:   instance(nodes("node-b"), labels("node-a")), action: Leave, patch: version + label,
		},
		"the last node, while another one has a slot": {
			reason: "without the Instance, a node could be given a slot that a container has",
			have:   instance(owners("", "node-b")), action: Leave, patch: entry + label,
		},
		"the last node, with a slot whose owner is unreadable": {
			reason: "it may be somebody's", have: instance(owners("node:x")), action: Leave,
			patch: entry + label,
		},
		"the last node, with a key that is no slot": {
			reason: "no container has it",
			have:   instance(func(i *v0.Instance) { i.Spec.DeviceUsage["junk"] = "node-b" }), action: Delete,
		},
		"nobody sees it, and this node's container has a slot": {
			reason: "the slot is released first", have: instance(nodes(), labels("node-a"), owners("node-a")), action: Wait,
		},
		"nobody sees it, and the last slot is free": {
			reason: "the agent that releases the last slot deletes it", have: instance(nodes(), labels("node-a")), action: Delete,
		},
		"nobody sees it, and another node has a slot": {
			reason: "the other node deletes it later", have: instance(nodes(), labels("node-a", "node-b"), owners("node-b")), action: Leave,
			patch: version + label,
		},
		"the Configuration is gone": {
			reason: "garbage collection deletes it, once for all nodes", have: instance(nodes("node-a", "node-b")), collected: true, action: Wait,
		},
		"the Configuration and the owner are gone": {
			reason: "garbage collection has kept it: --cascade=orphan", collected: true, action: Leave,
			have:  instance(nodes("node-a", "node-b"), func(i *v0.Instance) { i.OwnerReferences = nil }),
			patch: entry + label,
		},
	} {
		t.Run(name, func(t *testing.T) {
			here := on("node-a")
			here.collected = tc.collected
			step := here.absent(tc.have)
			if step.Action != tc.action || encoded(step.Patch) != tc.patch {
				t.Errorf("%s\n got %s %s\nwant %s %s", tc.reason, step.Action, encoded(step.Patch), tc.action, tc.patch)
			}
		})
	}
}

func TestFind(t *testing.T) {
	here := on("node-a")
	long := v0.LongInstanceName("door", "foo0", "node-a", true)
	stranger := instance(func(i *v0.Instance) { i.Annotations[v0.AnnotationDeviceID] = "with the same hash" })
	if found, name := here.find(camera, nil); found != nil || name != "door-8120fe" {
		t.Errorf("no Instance: %v %s", found, name)
	}
	if found, name := here.find(camera, named(stranger)); found != nil || name != long {
		t.Errorf("the name is taken: %v %s, want %s", found, name, long)
	}
	own := instance(func(i *v0.Instance) { i.Name = long })
	if found, name := here.find(camera, named(stranger, own)); found != own || name != long {
		t.Errorf("both Instances: %v %s", found, name)
	}
	if found, name := here.find(camera, named(own)); found != own || name != long {
		t.Errorf("the Instance that had the name is gone: %v %s", found, name)
	}
	unmarked := instance(func(i *v0.Instance) { i.Annotations = nil })
	if found, _ := here.find(camera, named(unmarked)); found != unmarked {
		t.Error("an Instance that another program created is not recognised by its name")
	}
	short, long := v0.InstanceName("door", stick.ID, "node-a", false), v0.LongInstanceName("door", stick.ID, "node-a", false)
	for who, own := range map[string]bool{"node-a": true, "node-b": false} {
		local := intent(door(), stick, who, short)
		local.Labels[v0.NodeLabel("node-a")] = ""
		if found, name := here.find(stick, named(local)); (found == local) != own || (name == short) != own || !own && name != long {
			t.Errorf("a local device whose Instance lists %s: %v %s", who, found, name)
		}
	}
}

func named(list ...*v0.Instance) map[string]*v0.Instance {
	names := map[string]*v0.Instance{}
	for _, one := range list {
		names[one.Name] = one
	}
	return names
}
