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

// Both resources give slots of the same device: a container through each, and a third
// waits.
func TestBothLevelsOfOneDevice(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instance := w.configuration("levels", 2, "levels0")["levels0"]
	w.started("by-instance", node1, instance)
	w.started("by-configuration", node2, "levels")
	w.awaitUsage(instance, "C:0:node2", node1)
	w.consistent()
	w.allocatable(node1, "levels", 0)
	w.allocatable(node2, instance, 0)
	w.pod("third", "", "levels")
	w.pending("third")
	w.delete("Pod", "by-instance")
	w.container("third", "app")
	w.consistent()
	for _, name := range []string{"by-configuration", "third"} {
		w.delete("Pod", name)
		w.gone(name)
	}
	w.awaitUsage(instance)
	if failed := w.failedPods(); failed != "" {
		t.Error(failed)
	}
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

// cameras is a Deployment as the documentation of Akri's Configuration-level resources
// shows it: every replica uses two cameras.
func cameras(name, resource string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: %[3]d
  selector:
    matchLabels:
      name: %[1]s
  template:
    metadata:
      labels:
        name: %[1]s
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: %[1]s
        image: "akri.local/workload:1"
        env:
        - {name: CONTAINER, value: app}
        - %[4]s
        resources:
          requests:
            "akri.sh/%[2]s": "2"
          limits:
            "akri.sh/%[2]s": "2"
`, name, resource, replicas, namespaceVariable)
}

// The Deployments of Akri's documentation: one replica with two cameras, then two
// replicas that share two cameras. With one camera, both replicas wait for another.
func TestDeploymentsOfTheDocumentation(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	w.describeDevices("onvif-camera", 2, "camera0")
	w.awaitInstances("onvif-camera", []string{"camera0"}, node1, node2)
	w.apply(cameras("onvif-camera-broker-deployment", "onvif-camera", 1))
	w.apply(cameras("onvif-broker-deployment", "onvif-camera", 2))
	w.eventually("three pods", func() string {
		if pods := w.list("Pod", ""); len(pods) != 3 {
			return namesOf(pods)
		}
		return ""
	})
	for _, pod := range w.list("Pod", "") {
		w.pending(pod.Metadata.Name)
	}
	w.end("onvif-broker-deployment", "name=onvif-broker-deployment")
	both := []string{"camera0", "camera1"}
	w.describeDevices("onvif-camera", 2, both...)
	instances := w.awaitInstances("onvif-camera", both, node1, node2)
	check := func(deployment string, replicas int) {
		t.Helper()
		w.eventually("pods of "+deployment, func() string {
			if o := w.get("Deployment", deployment); o.Status.ReadyReplicas != replicas {
				return fmt.Sprintf("%d are ready; failed: %s", o.Status.ReadyReplicas, w.failedPods())
			}
			return ""
		})
		for _, pod := range w.list("Pod", "name="+deployment) {
			if pod.Status.Phase == "Failed" {
				// Its node was too slow, or the other node was faster.
				t.Logf("%s was rejected: %s", pod.Metadata.Name, pod.Status.Message)
				continue
			}
			if u := w.of(pod.Metadata.Name)["app"]; !slices.Equal(u.devices, both) {
				t.Errorf("%v, want both cameras", u)
			}
		}
	}
	check("onvif-camera-broker-deployment", 1)
	w.end("onvif-camera-broker-deployment", "name=onvif-camera-broker-deployment")
	w.apply(cameras("onvif-broker-deployment", "onvif-camera", 2))
	check("onvif-broker-deployment", 2)
	if got := w.allUsage(instances); len(got) != 4 {
		t.Errorf("slots are owned by %q, want four owners", got)
	}
	w.consistent()
}
