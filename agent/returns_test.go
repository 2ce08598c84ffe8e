package agent_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"akri.sh/akri/agent/discover/hostpaths"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
)

// returning is a node with the handler "returning", which restarts.
type returning struct {
	*node
	lists chan []discovery.Device
}

func (w *world) returning(t *testing.T) returning {
	t.Helper()
	n := returning{w.node("a"), make(chan []discovery.Device)}
	w.configure("door", "", func(spec map[string]any) { spec["discoveryHandler"] = map[string]any{"name": "returning"} })
	return n
}

func (n returning) startHandler() (stop func()) {
	return n.node.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, "returning", scripted{n.lists}, discovery.Options{Dir: n.directory, Logger: slog.New(slog.DiscardHandler)})
	})
}

func (n returning) send(ids ...string) {
	var list []discovery.Device
	for _, id := range ids {
		list = append(list, discovery.Device{ID: id})
	}
	n.lists <- list
}

// awaitOnline waits until the devices are known, and whether they are online.
func (n returning) awaitOnline(want map[string]bool) {
	n.t.Helper()
	n.eventually("the right devices are online", func() bool {
		known := map[string]bool{}
		for _, d := range n.sink.of(n.namespace, "door") {
			known[d.ID] = d.Online
		}
		return maps.Equal(known, want)
	})
}

// The first lists of a handler that has restarted are empty, and then not complete. No
// Instance of a device that comes later is deleted; one that the handler has reported again
// goes at once.
func TestFirstListsOfAHandlerThatRestarts(t *testing.T) {
	n := newWorld(t).returning(t)
	n.startAgent()
	stop := n.startHandler()
	n.send("front", "back")
	before := versions(n.awaitDevices("front", "back"))
	stop()
	n.startHandler()
	n.send()
	n.awaitOnline(map[string]bool{"front": false, "back": false})
	n.send("back")
	n.awaitOnline(map[string]bool{"front": false, "back": true})
	n.send()
	n.awaitOnline(map[string]bool{"front": false})
	n.awaitDevices("front")
	n.send("front")
	n.awaitOnline(map[string]bool{"front": true})
	if after := versions(n.awaitDevices("front")); after["front"] != before["front"] {
		t.Errorf("the Instance is %s, and was %s before the restart", after["front"], before["front"])
	}
	n.send()
	n.awaitDevices()
}

// An agent that restarts together with its handlers keeps what their first lists lack, and
// offers what they have.
func TestFirstListsAfterAnAgentRestarts(t *testing.T) {
	n := newWorld(t).returning(t)
	stopAgent, stopHandler := n.startAgent(), n.startHandler()
	n.send("front", "back")
	before := versions(n.awaitDevices("front", "back"))
	stopAgent()
	stopHandler()
	*n.sink = recorder{}
	n.startAgent()
	n.startHandler()
	n.send("back")
	n.awaitOnline(map[string]bool{"front": false, "back": true})
	n.send("back", "side")
	n.awaitOnline(map[string]bool{"front": false, "back": true, "side": true})
	n.send("front", "back")
	n.awaitOnline(map[string]bool{"front": true, "back": true})
	if after := versions(n.awaitDevices("front", "back")); !maps.Equal(after, before) {
		t.Errorf("the Instances are %v, and were %v before the restart", after, before)
	}
	n.send("front")
	n.awaitDevices("front")
}

// A local device that is away within its grace period keeps its Instance, also if it comes back
// with another device file. Containers get no slot meanwhile. One that stays away is gone.
func TestALocalDeviceIsAwayForAMoment(t *testing.T) {
	n := newWorld(t).returning(t)
	rules, err := hostpaths.Parse([]string{"*=/dev"})
	if err != nil {
		t.Fatal(err)
	}
	n.hostPaths.DeviceFiles = rules
	configure := func(seconds, capacity int64) {
		n.configure("door", "", func(spec map[string]any) {
			spec["capacity"] = capacity
			spec["discoveryHandler"] = map[string]any{"name": "returning", "gracePeriodSeconds": seconds}
		})
	}
	configure(600, 2)
	n.startAgent()
	n.startHandler()
	with := func(path string) {
		file := discovery.DeviceSpec{ContainerPath: path, HostPath: path, Permissions: "rw"}
		n.lists <- []discovery.Device{{ID: "stick", DeviceSpecs: []discovery.DeviceSpec{file}}}
	}
	with("/dev/ttyUSB0")
	before := n.awaitDevices("stick")["stick"]
	n.awaitOnline(map[string]bool{"stick": true})
	n.send()
	n.awaitOnline(map[string]bool{"stick": false})
	with("/dev/ttyUSB0")
	n.awaitOnline(map[string]bool{"stick": true})
	if now := n.awaitDevices("stick")["stick"]; now.UID != before.UID || now.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Instance is %s, and was %s before the device was away", now.ResourceVersion, before.ResourceVersion)
	}
	n.send()
	n.awaitOnline(map[string]bool{"stick": false})
	with("/dev/ttyUSB1")
	n.eventually("containers get the new file", func() bool {
		known := n.sink.of(n.namespace, "door")
		return len(known) == 1 && known[0].Online && known[0].Files[0].HostPath == "/dev/ttyUSB1"
	})
	now := n.awaitDevices("stick")["stick"]
	if paths := now.Spec.BrokerProperties[v0.PropertyDevicePaths]; now.UID != before.UID || paths != "/dev/ttyUSB1" {
		t.Errorf("the Instance %s has the files %q, want /dev/ttyUSB1 of %s", now.UID, paths, before.UID)
	}
	if former := now.Annotations[v0.AnnotationFormerDevicePaths]; !strings.HasSuffix(former, "Z /dev/ttyUSB0") {
		t.Errorf("the former files are %q", former)
	}
	configure(1, 3)
	n.eventually("the agent knows the Configuration", func() bool { return n.instances()["stick"].Spec.Capacity == 3 })
	n.send()
	n.awaitDevices()
}
