package slots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// maxChurnPods bounds the Pods at a time.
const maxChurnPods = 10

// Pods of all kinds come and go on both nodes and at both levels, while components are
// killed at random. At no time does a device have more containers than slots, or a
// container have a slot that its node does not own. In the end no slot is lost, and no
// Instance has been created again.
func TestChurn(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	length, seed := clustertest.Soak(t, time.Minute)
	devices := []string{"churn0", "churn1", "churn2"}
	c := &churn{world: w, random: rand.New(rand.NewPCG(seed, 0)), instances: w.configuration("churn", 2, devices...)}
	before := w.identities()
	stop := w.monitor()
	for began := time.Now(); time.Since(began) < length && !t.Failed(); {
		c.act()
	}
	t.Logf("%d pods: %d ran, %d were rejected; %v", c.created, len(c.ran), c.rejected, c.disruptions)
	if len(c.ran) == 0 {
		t.Error("no pod ran")
	}
	c.recover()
	for _, name := range c.pods {
		w.delete("Pod", name)
	}
	for _, name := range c.pods {
		w.gone(name)
	}
	took := w.within(2*releaseBound, "all slots are free", func() string {
		if owners := w.allUsage(c.instances); len(owners) > 0 {
			return fmt.Sprint(owners)
		}
		return ""
	})
	t.Logf("all slots were free %v after the last pod", took.Round(time.Millisecond))
	stop()
	if after := w.identities(); after != before {
		t.Errorf("Instances %s, before %s", after, before)
	}
	w.healthy()
	for i, node := range w.Nodes() {
		for _, level := range levels {
			resource := level.resource("churn", c.instances[devices[i]])
			name := fmt.Sprintf("after-%s-%d", strings.ToLower(level.name), i)
			w.eventually(name+" runs", func() string { return c.runs(name, node, resource) })
		}
	}
}

// identities returns the names and UIDs of the Instances.
func (w *world) identities() string {
	w.t.Helper()
	text := ""
	for _, instance := range w.list("Instance", "") {
		text += instance.Metadata.Name + " " + instance.Metadata.UID + " "
	}
	return text
}

// runs creates a Pod and returns "" if it runs. A Pod that the kubelet rejects, because
// its agent is not back yet, is deleted.
func (c *churn) runs(name, node, resource string) string {
	c.t.Helper()
	c.pod(name, node, resource)
	state := c.describe(name)
	switch _, runs := c.of(name)["app"]; {
	case runs:
		return ""
	case strings.HasPrefix(state, "Failed"):
		c.delete("Pod", name)
		c.gone(name)
	}
	return state
}

// churn is the state of TestChurn.
type churn struct {
	*world
	random      *rand.Rand
	instances   map[string]string // by device
	pods        []string
	created     int
	ran         map[string]bool // by the name of the Pod
	rejected    int
	disruptions map[string]int
}

// act performs a random action.
func (c *churn) act() {
	c.t.Helper()
	c.observe()
	switch choice := c.random.IntN(20); {
	case choice == 0:
		c.disrupt()
	case choice < 11 && len(c.pods) < maxChurnPods:
		c.create()
	case len(c.pods) > maxChurnPods/2: // the older half, so that most have run
		i := c.random.IntN(len(c.pods) / 2)
		c.delete("Pod", c.pods[i])
		c.pods = append(c.pods[:i:i], c.pods[i+1:]...)
	}
	time.Sleep(time.Duration(c.random.IntN(400)) * time.Millisecond) // the rate is part of the test
}

// observe counts the Pods that run or have been rejected, and deletes the latter.
func (c *churn) observe() {
	c.t.Helper()
	if c.ran == nil {
		c.ran, c.disruptions = map[string]bool{}, map[string]int{}
	}
	for _, u := range c.processes.running() {
		if u.namespace == c.namespace {
			c.ran[u.pod] = true
		}
	}
	for _, pod := range c.list("Pod", "") {
		if pod.Status.Phase == "Failed" && pod.Metadata.DeletionTimestamp == "" {
			c.rejected++
			c.delete("Pod", pod.Metadata.Name)
		}
	}
}

// create creates a Pod of a random kind, on a random node, at a random level.
func (c *churn) create() {
	c.t.Helper()
	name := fmt.Sprintf("churn-%d", c.created)
	c.created++
	c.pods = append(c.pods, name)
	level := levels[c.random.IntN(len(levels))]
	device := fmt.Sprintf("churn%d", c.random.IntN(len(c.instances)))
	count := 1
	if level.name == "Configuration" {
		count += c.random.IntN(2)
	}
	app := container{name: "app", resources: limit(level.resource("churn", c.instances[device]), count)}
	var inits []container
	switch other := app; c.random.IntN(4) {
	case 0:
		other.name, other.more = "init", "args: [end]"
		inits = append(inits, other)
	case 1:
		other.name, other.more = "sidecar", "restartPolicy: Always, args: [\"6053\"]"
		inits = append(inits, other)
	case 2:
		app.more = "args: [end]" // crashes, as far as the kubelet is concerned
	}
	c.podWith(name, podSpec(c.node(), inits, app))
}

// node returns a random node.
func (c *churn) node() string { return c.Nodes()[c.random.IntN(len(c.Nodes()))] }

// disrupt kills or restarts a random component.
func (c *churn) disrupt() {
	c.t.Helper()
	node := c.node()
	disruptions := []struct {
		what string
		do   func()
	}{
		{"agent killed", func() { c.killAgent(node) }},
		{"kubelet killed", func() { c.do(node+"/kubelet", cluster.Kill, cluster.Run) }},
		{"kubelet restarted", func() { c.do(node+"/kubelet", cluster.Restart) }},
		{"handler killed", func() { c.killPods("akri-debug-echo-discovery") }},
		{"controller killed", func() { c.killPods("akri-controller") }},
		{"API server killed", func() {
			c.do("kube-apiserver", cluster.Kill)
			time.Sleep(time.Duration(c.random.IntN(3000)) * time.Millisecond) // the length of the outage
			c.do("kube-apiserver", cluster.Run)
			c.ready()
		}},
	}
	chosen := disruptions[c.random.IntN(len(disruptions))]
	c.disruptions[chosen.what]++
	chosen.do()
}

// recover waits until all components are ready again.
func (c *churn) recover() {
	c.t.Helper()
	c.ready()
	for _, node := range c.Nodes() {
		c.agentReady(node)
	}
}
