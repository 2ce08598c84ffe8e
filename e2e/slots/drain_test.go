package slots

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// failoverBound is how long a broker may take to run on another node, after its node has
// been drained.
const failoverBound = 15 * time.Second

// brokers are Configurations whose only broker runs on one of the nodes that see the device.
var brokers = map[string]string{
	"brokerSpec": `
  brokerSpec:
    brokerPodSpec: {terminationGracePeriodSeconds: 1, containers: [%s]}
`,
	"BROKER_NODES": `
  instanceBrokerResources:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ INSTANCE_NAME }}"}
    spec:
      strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
      selector: {matchLabels: "{{ LABEL_SELECTOR }}"}
      template:
        spec:
          terminationGracePeriodSeconds: 1
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: "{{ BROKER_NODES }}"}]
          containers: [%s]
`,
}

// A broker moves when its node is drained, or cordoned before its Pod is deleted, and does
// not move when the node returns. It is not parallel: no other test has a node less.
func TestBrokersLeaveANode(t *testing.T) {
	w := newWorld(t)
	for name, templates := range brokers {
		w.step(name, func(w *world) {
			f := failover{world: w, device: "drain-" + name}
			w.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: drain}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [%s]"}
  capacity: 1
`+templates, f.device, container{name: "app", resources: `"{{PLACEHOLDER}}": "1"`}.manifest()))
			f.instance = w.awaitInstances("drain", []string{f.device}, node1, node2)[f.device]
			f.at = f.awaitBroker(timeout, node1, node2)
			stop := w.monitor()
			defer stop()
			for range countOf(w.t, drainsVariable, rounds(20)) {
				f.drained = append(f.drained, f.leave(func() {
					f.kubectl("drain", f.at, "--ignore-daemonsets", "--timeout=60s")
				}))
				f.cordoned = append(f.cordoned, f.leave(func() {
					f.kubectl("cordon", f.at)
					for _, pod := range w.list("Pod", "akri.sh/instance="+f.instance) {
						w.delete("Pod", pod.Metadata.Name)
					}
				}))
			}
			w.t.Logf("until the broker runs on the other node: after a drain %s; after a cordon %s",
				distribution(f.drained), distribution(f.cordoned))
			w.delete("Configuration", "drain")
			w.eventually("deletion of the Instance", func() string { return namesOf(w.list("Instance", "")) })
		})
	}
}

// drainsVariable is how many times nodes are drained, and cordoned, for each broker.
const drainsVariable = "AKRI_E2E_DRAINS"

// rounds returns how often a test repeats what it does: once, but more often in make full.
func rounds(full int) int {
	if os.Getenv(clustertest.FullVariable) == "" {
		return 1
	}
	return full
}

// failover moves the broker of a device from node to node.
type failover struct {
	*world
	device, instance  string
	at                string // the broker's node
	drained, cordoned []time.Duration
}

func (f *failover) kubectl(args ...string) {
	f.t.Helper()
	if _, err := f.Kubectl(f.ctx, args...); err != nil {
		f.t.Fatal(err)
	}
}

// awaitBroker waits until exactly one broker runs, on one of the nodes, and has the slot.
// It returns the node.
func (f *failover) awaitBroker(limit time.Duration, nodes ...string) (node string) {
	f.t.Helper()
	f.within(limit, fmt.Sprintf("the broker runs on %v", nodes), func() string {
		users, owners := f.usersOf(f.device), f.usage(f.instance)
		if len(users) != 1 || !slices.Contains(nodes, users[0].node) || !slices.Equal(owners, []string{users[0].node}) {
			return fmt.Sprintf("%v, owners %q, nodes %q, pods %s", users, owners, f.get("Instance", f.instance).Spec.Nodes,
				namesOf(f.list("Pod", "akri.sh/instance="+f.instance)))
		}
		node = users[0].node
		return ""
	})
	return node
}

// leave makes the broker leave its node, and returns how long it then took until it ran on
// the other one. That one keeps it when the first returns.
func (f *failover) leave(do func()) time.Duration {
	f.t.Helper()
	before, other := f.at, map[string]string{node1: node2, node2: node1}[f.at]
	restore := f.undo(func(after *world) {
		if _, err := after.Kubectl(after.ctx, "uncordon", before); err != nil {
			after.t.Error(err)
		}
	})
	do()
	began := time.Now()
	f.at = f.awaitBroker(failoverBound, other)
	took := time.Since(began)
	f.t.Logf("from %s after %v", before, took.Round(time.Millisecond))
	restore()
	f.agentReady(before)
	f.allocatable(before, f.instance, 0)
	f.eventually("the webhook", f.admits)
	if at := f.awaitBroker(timeout, node1, node2); at != other {
		f.t.Errorf("the broker has moved back to %s", at)
	}
	return took
}
