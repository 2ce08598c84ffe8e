package slots

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
)

// A container that requests devices of a Configuration gets different ones, with the
// properties of each as NAME_HASH. NAME is that of the first Instance by name. A Pod
// that requests more than there are waits for the next device to be discovered.
func TestDevicesOfAConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	instances := w.configuration("any", 1, "any0", "any1")
	w.podWith("two", podSpec(node1, nil, container{name: "app", resources: limit("any", 2)}))
	u := w.container("two", "app")
	if !slices.Equal(u.devices, []string{"any0", "any1"}) {
		t.Errorf("%v, want both devices", u)
	}
	first := ""
	for device, instance := range instances {
		name := property + "_" + strings.ToUpper(strings.TrimPrefix(instance, "any-"))
		if u.environment[name] != device {
			t.Errorf("%s=%q, want %q", name, u.environment[name], device)
		}
		if first == "" || instance < instances[first] {
			first = device
		}
	}
	if u.environment[property] != first {
		t.Errorf("%s=%q, want %q, the property of the first Instance by name", property, u.environment[property], first)
	}
	if got, want := w.allUsage(instances), []string{"C:0:node1", "C:1:node1"}; !slices.Equal(got, want) {
		t.Errorf("slots are owned by %q, want %q", got, want)
	}
	w.consistent()
	w.endPod("two", instances)

	w.podWith("three", podSpec(node1, nil, container{name: "app", resources: limit("any", 3)}))
	w.pending("three")
	all := []string{"any0", "any1", "any2"}
	w.describeDevices("any", 1, all...)
	instances = w.awaitInstances("any", all, node1, node2)
	if u := w.container("three", "app"); !slices.Equal(u.devices, all) {
		t.Errorf("%v, want all three devices", u)
	}
	w.consistent()
	w.endPod("three", instances)
}

// otherPort lets a container of a Pod serve at another port than the others.
const otherPort = "args: ['6060']"

// Containers of one Pod get devices of their own: two of them with two devices each,
// others through either resource, and one through both at once.
func TestContainersOfOnePod(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	all := []string{"pair0", "pair1", "pair2", "pair3"}
	instances := w.configuration("pair", 1, all...)
	stop := w.monitor()
	defer stop()
	w.podWith("two-each", podSpec(node1, nil,
		container{name: "first", resources: limit("pair", 2)}, container{name: "second", resources: limit("pair", 2), more: otherPort}))
	devices := append(w.container("two-each", "first").devices, w.container("two-each", "second").devices...)
	slices.Sort(devices)
	if !slices.Equal(devices, all) {
		t.Errorf("the containers have %q, want two of %q each", devices, all)
	}
	w.consistent()
	w.endPod("two-each", instances)

	w.podWith("either", podSpec(node1, nil,
		container{name: "one", resources: limit(instances["pair0"], 1)}, container{name: "any", resources: limit("pair", 1), more: otherPort}))
	one, other := w.container("either", "one"), w.container("either", "any")
	if !slices.Equal(one.devices, []string{"pair0"}) || len(other.devices) != 1 || other.devices[0] == "pair0" {
		t.Errorf("%v and %v, want pair0 and another device", one, other)
	}
	if got, want := w.allUsage(instances), []string{"C:0:node1", "node1"}; !slices.Equal(got, want) {
		t.Errorf("slots are owned by %q, want %q", got, want)
	}
	w.consistent()
	w.endPod("either", instances)

	w.podWith("both", podSpec(node1, nil, container{name: "app", resources: limit(instances["pair0"], 1) + ", " + limit("pair", 1)}))
	if u := w.container("both", "app"); len(u.devices) != 2 || u.devices[0] != "pair0" {
		t.Errorf("%v, want pair0 and another device", u)
	}
	w.consistent()
	w.endPod("both", instances)
}

// Two ids that stand for the same device are given to one container: it gets two
// different devices.
func TestIDsOfOneDeviceInOneContainer(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instances := w.configuration("remap", 2, "remap0", "remap1")
	stop := w.monitor()
	defer stop()
	for round := range 2 {
		// While the other device is full, two ids stand for this one.
		for i := range 2 {
			w.started(fmt.Sprintf("full-%d", i), node2, instances["remap1"])
		}
		for i := range 2 {
			w.started(fmt.Sprintf("one-%d", i), node1, "remap")
		}
		w.awaitUsage(instances["remap0"], "C:0:node1", "C:1:node1")
		for i := range 2 {
			w.delete("Pod", fmt.Sprintf("full-%d", i))
			w.gone(fmt.Sprintf("full-%d", i))
		}
		w.awaitUsage(instances["remap1"])
		w.podWith("two", podSpec(node1, nil, container{name: "app", resources: limit("remap", 2)}))
		for i := range 2 {
			w.delete("Pod", fmt.Sprintf("one-%d", i))
		}
		if u := w.container("two", "app"); !slices.Equal(u.devices, []string{"remap0", "remap1"}) {
			t.Errorf("round %d: %v, want two different devices", round, u)
		}
		w.consistent()
		for i := range 2 {
			w.gone(fmt.Sprintf("one-%d", i))
		}
		w.endPod("two", instances)
	}
}
