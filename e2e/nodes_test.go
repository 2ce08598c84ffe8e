package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// startPair starts a cluster with two nodes for one test. The controller runs on the
// first node and treats a node as lost after a short time.
func startPair(t *testing.T) *world {
	t.Helper()
	c := clustertest.Start(t, cluster.Config{Nodes: 2, Flags: map[string][]string{
		"kube-controller-manager": {"--node-monitor-grace-period=8s"},
	}})
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := akri.Install(t.Context(), c, programs); err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, t: t, namespace: "default"}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
		defer cancel()
		if t.Failed() {
			t.Log(akri.Evidence(ctx, c, w.namespace))
		}
	})
	w.kubectl("--namespace", akri.Namespace, "patch", "deployment", "akri-controller", "--type=json", "--patch", `[
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--node-grace=2s"},
		{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"kubernetes.io/hostname": "node1"}}]`)
	w.kubectl("--namespace", akri.Namespace, "rollout", "status", "--timeout=60s", "deployment/akri-controller")
	return w
}

// createUser creates a Pod that uses a device on a node, and waits until it is Ready.
func (w *world) createUser(name, node, instance string) {
	w.t.Helper()
	w.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: %s}
  containers:
  - {name: c, image: "akri.local/workload:1", resources: {limits: {"akri.sh/%s": "1"}}}
`, name, node, instance))
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "pod/"+name)
}

// awaitNodes waits until an Instance lists exactly these nodes and has an object for each,
// and returns it.
func (w *world) awaitNodes(instance string, nodes ...string) object {
	w.t.Helper()
	var found object
	took := w.eventually(fmt.Sprintf("%s on nodes %v", instance, nodes), func() string {
		found = object{} // decoding would keep the entries of maps
		if err := json.Unmarshal([]byte(w.kubectl("get", "instance", instance, "--output=json")), &found); err != nil {
			w.t.Fatal(err)
		}
		slices.Sort(found.Spec.Nodes)
		if !slices.Equal(found.Spec.Nodes, nodes) {
			return fmt.Sprintf("on %v", found.Spec.Nodes)
		}
		var have, want []string
		for _, item := range w.list("configmaps") {
			if strings.HasPrefix(item.Metadata.Name, instance) {
				have = append(have, item.Metadata.Name)
			}
		}
		for _, node := range nodes {
			want = append(want, instance+"-"+node)
		}
		if !slices.Equal(have, want) {
			return fmt.Sprintf("its ConfigMaps are %v, want %v", have, want)
		}
		return ""
	})
	w.t.Logf("%s is on nodes %v after %v", instance, nodes, took.Round(time.Millisecond))
	return found
}

// A node that is cut off, or loses power, is removed from the Instances that none of its
// Pods uses, and is added again when it returns. A node that is deleted is removed from
// all.
func TestLostNode(t *testing.T) {
	clustertest.Full(t)
	w := startPair(t)
	w.kubectl("patch", "node", "node1", "--subresource=status", "--type=merge", "--patch",
		`{"status": {"capacity": {"akri.sh/gone": "0", "example.com/gone": "0"}, "allocatable": {"akri.sh/gone": "0", "example.com/gone": "0"}}}`)
	w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: echo}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0, foo1]"}
  capacity: 2
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}-{{NODE}}", annotations: {akri.sh/for-each: NODES}}
    data: {node: "{{NODE}}"}
`)
	const used, unused = "echo-8120fe", "echo-a19705"
	w.awaitReady("echo", 2)
	w.awaitNodes(used, "node1", "node2")
	w.awaitNodes(unused, "node1", "node2")
	w.createUser("there", "node1", used)
	w.createUser("lost", "node2", used)
	w.cutOff(used, unused)

	if err := w.Do(t.Context(), cluster.Kill, "node2"); err != nil {
		t.Fatal(err)
	}
	w.awaitNodes(unused, "node1")
	if kept := w.awaitNodes(used, "node1", "node2"); heldBy(kept, "node2") != 1 {
		t.Errorf("deviceUsage %v, want the slot held by a Pod that may still be running", kept.Spec.DeviceUsage)
	}
	w.kubectl("delete", "pod", "lost", "--force", "--grace-period=0")
	if left := w.awaitNodes(used, "node1"); heldBy(left, "node2") != 0 || heldBy(left, "node1") != 1 {
		t.Errorf("deviceUsage %v, want the lost node's slot free and the other's held", left.Spec.DeviceUsage)
	}

	if err := w.Do(t.Context(), cluster.Run, "node2"); err != nil {
		t.Fatal(err)
	}
	if err := w.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitNodes(used, "node1", "node2")
	w.awaitNodes(unused, "node1", "node2")
	w.createUser("again", "node2", used)
	w.checkStaleResources()

	if err := w.Do(t.Context(), cluster.Kill, "node2"); err != nil {
		t.Fatal(err)
	}
	w.kubectl("delete", "node", "node2")
	if left := w.awaitNodes(used, "node1"); heldBy(left, "node2") != 0 || heldBy(left, "node1") != 1 {
		t.Errorf("deviceUsage %v, want the deleted node's slot free and the other's held", left.Spec.DeviceUsage)
	}
	w.awaitNodes(unused, "node1")
}

// checkStaleResources checks that the resource that the test added to the status of node1
// is removed, but only Akri's.
func (w *world) checkStaleResources() {
	w.t.Helper()
	// Meanwhile, the kubelet of node1 has kept updating the Node's status.
	w.eventually("removal of the stale resource", func() string {
		capacity := w.kubectl("get", "node", "node1", "--output=jsonpath={.status.capacity} {.status.allocatable}")
		if strings.Contains(capacity, "akri.sh/gone") {
			return capacity
		}
		if strings.Count(capacity, "example.com/gone") != 2 {
			w.t.Fatalf("another vendor's resource was removed: %s", capacity)
		}
		return ""
	})
}

// cutOff disconnects node2 and connects it again. Meanwhile, its Pod "lost" runs on and
// keeps its slot of an Instance.
func (w *world) cutOff(used, unused string) {
	w.t.Helper()
	container := func() string {
		return w.kubectl("get", "pod", "lost",
			"--output=jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
	}
	link := func(state string) {
		// The node's end of this pair of interfaces is its only connection.
		if err := w.Exec(w.t.Context(), cluster.Command{Args: []string{"ip", "link", "set", "veth2", state}}); err != nil {
			w.t.Fatal(err)
		}
	}
	before := container()
	link("down")
	w.awaitNodes(unused, "node1")
	if kept := w.awaitNodes(used, "node1", "node2"); heldBy(kept, "node2") != 1 {
		w.t.Errorf("deviceUsage %v, want the slot of the node that is cut off held", kept.Spec.DeviceUsage)
	}
	link("up")
	if err := w.WaitReady(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.awaitNodes(unused, "node1", "node2")
	if kept := w.awaitNodes(used, "node1", "node2"); heldBy(kept, "node2") != 1 {
		w.t.Errorf("deviceUsage %v, want the slot held as before", kept.Spec.DeviceUsage)
	}
	if after := container(); after != before {
		w.t.Errorf("the container of the node that was cut off: %s, before %s", after, before)
	}
}

// heldBy counts the slots of an Instance that a node holds.
func heldBy(instance object, node string) int {
	count := 0
	for _, owner := range instance.Spec.DeviceUsage {
		if owner == node {
			count++
		}
	}
	return count
}
