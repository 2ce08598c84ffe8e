package slots

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// replacementsVariable is how many times a Pod is replaced at each level.
const replacementsVariable = "AKRI_E2E_REPLACEMENTS"

// replacements returns how many times a Pod is replaced at each level.
func replacements(t testing.TB) int { return countOf(t, replacementsVariable, 5) }

// countOf returns a number from an environment variable, or else a default.
func countOf(t testing.TB, variable string, fallback int) int {
	t.Helper()
	text := envOr(variable, strconv.Itoa(fallback))
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		t.Fatalf("%s=%q: want a positive number", variable, text)
	}
	return count
}

// resourceLevel is one of the two resources through which a container gets a device.
type resourceLevel struct {
	name string
	// resource returns the resource, given the names of the Configuration and the
	// Instance.
	resource func(configuration, instance string) string
	// owner returns the owner in deviceUsage of the only device that a node uses.
	owner func(node string) string
}

// levels are both levels.
var levels = []resourceLevel{
	{
		"Instance",
		func(_, instance string) string { return instance },
		func(node string) string { return node },
	},
	{
		"Configuration",
		func(configuration, _ string) string { return configuration },
		func(node string) string { return "C:0:" + node },
	},
}

// plainResource is a resource of a node that nobody serves: neither Akri nor any other
// device plugin.
const plainResource = "example.com/plain"

// A Pod of a Deployment is replaced on its node again and again: the only slot passes
// from each to the next, no Pod fails, and no two containers have it. How long that takes
// is told next to the same without Akri.
func TestReplacedPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.step("without Akri", func(w *world) {
		clustertest.Full(w.t) // a measurement
		w.patch("Node", node1+"/status", fmt.Sprintf("{status: {capacity: {%s: \"1\"}}}", plainResource))
		w.replace(plainResource)
		w.end("user", "app=user")
		w.patch("Node", node1+"/status", fmt.Sprintf("{status: {capacity: {%s: null}}}", plainResource))
	})
	instance := w.configuration("replace", 1, "replace0")["replace0"]
	for _, level := range levels {
		w.step(level.name, func(w *world) {
			stop := w.monitor()
			w.replace("akri.sh/" + level.resource("replace", instance))
			stop()
			w.awaitUsage(instance, level.owner(node1))
			w.end("user", "app=user")
			w.awaitUsage(instance)
		})
	}
}

// replace creates a Deployment whose only Pod uses one unit of a resource of a node. It
// replaces that Pod again and again, and tells how long each replacement took.
func (w *world) replace(resource string) {
	w.t.Helper()
	w.deployment("user", 1, podSpec(node1, nil, container{name: "app", resources: fmt.Sprintf("%q: \"1\"", resource)}))
	before := w.readyPod("user", "")
	var scheduled, ready []time.Duration
	for range replacements(w.t) {
		began := time.Now()
		w.delete("Pod", before)
		w.newPod("user", before, func(pod object) bool { return pod.Spec.NodeName != "" })
		scheduled = append(scheduled, time.Since(began))
		before = w.readyPod("user", before)
		ready = append(ready, time.Since(began))
	}
	if failed := w.failedPods(); failed != "" {
		w.t.Error(failed)
	}
	w.t.Logf("from the deletion until the next pod is scheduled: %s; Ready: %s", distribution(scheduled), distribution(ready))
}

// readyPod waits until a Pod of a Deployment, other than the one before, is Ready, and
// returns its name.
func (w *world) readyPod(deployment, before string) string {
	w.t.Helper()
	return w.newPod(deployment, before, func(pod object) bool { return pod.condition("Ready") })
}

// newPod waits until a Pod of a Deployment, other than the one before, is in a state, and
// returns its name.
func (w *world) newPod(deployment, before string, in func(pod object) bool) string {
	w.t.Helper()
	name := ""
	w.eventually("a new pod", func() string {
		pods := w.list("Pod", "app="+deployment)
		for _, pod := range pods {
			if pod.Metadata.Name != before && pod.Metadata.DeletionTimestamp == "" && in(pod) {
				name = pod.Metadata.Name
				return ""
			}
		}
		return "among " + namesOf(pods)
	})
	return name
}

// A slot is free soon after the container that had it has terminated.
func TestEndedPodFreesItsSlot(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instance := w.configuration("ended", 1, "ended0")["ended0"]
	type change struct {
		at   time.Time
		used bool
	}
	type end struct {
		pod string
		at  time.Time
	}
	changes, ends := make(chan change, 1000), make(chan end, 1000)
	usedBefore := false
	w.watch("Instance", func(e event) {
		if used := inUse(e.Object); used != usedBefore { // the status changes, too
			usedBefore = used
			changes <- change{time.Now(), used}
		}
	})
	w.watch("Pod", func(e event) {
		if e.Object.Status.Phase == "Succeeded" || e.Object.Status.Phase == "Failed" {
			ends <- end{e.Object.Metadata.Name, time.Now()}
		}
	})
	// Further events of a Pod, such as its deletion, can come after the next one has started.
	firstEnd := func(pod string) time.Time {
		for {
			if e := <-ends; e.pod == pod {
				return e.at
			}
		}
	}
	for _, level := range levels {
		w.step(level.name, func(w *world) {
			var took, reported []time.Duration
			for i := range replacements(t) {
				name := fmt.Sprintf("user-%s-%d", strings.ToLower(level.name), i)
				u := w.started(name, node1, level.resource("ended", instance))
				claim := change{}
				for !claim.used {
					claim = <-changes
				}
				time.Sleep(time.Until(claim.at.Add(settleTime)))
				w.delete("Pod", name)
				for u.alive() {
					time.Sleep(time.Millisecond)
				}
				ended := time.Now()
				select {
				case c := <-changes:
					if c.used {
						w.t.Fatal("the slot was claimed twice")
					}
					took = append(took, c.at.Sub(ended))
					reported = append(reported, c.at.Sub(firstEnd(name)))
				case <-time.After(timeout):
					w.t.Fatalf("deviceUsage is still %q", w.usage(instance))
				}
				w.gone(name)
			}
			w.t.Logf("to the free slot: from the end of the process %s; from the pod's terminal phase %s",
				distribution(took), distribution(reported))
			if slowest := slices.Max(took); slowest > releaseBound {
				w.t.Errorf("the slot was free only after %v, want %v", slowest, releaseBound)
			}
		})
	}
}

// inUse reports whether a slot of an Instance has an owner.
func inUse(instance object) bool {
	for _, owner := range instance.Spec.DeviceUsage {
		if owner != "" {
			return true
		}
	}
	return false
}

// settleTime is how long the agent counts a slot as used after it was given, whatever the
// kubelet lists: SettleTime of package slots.
const settleTime = 2 * time.Second

// releaseBound is how long a slot may stay owned after its container has terminated.
const releaseBound = 12 * time.Second

// distribution describes durations.
func distribution(all []time.Duration) string {
	sorted := slices.Sorted(slices.Values(all))
	at := func(percent int) time.Duration {
		return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %v, p95 %v, max %v of %d", at(50), at(95), at(100), len(all))
}

// Once a force-deleted Pod is gone from the API server, its container runs on for some
// seconds. No other node gets the slot in that time.
func TestForceDeletedPod(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instance := w.configuration("forced", 1, "forced0")["forced0"]
	for _, level := range levels {
		w.step(level.name, func(w *world) {
			stop := w.monitor()
			app := container{
				name: "app", resources: limit(level.resource("forced", instance), 1), more: "lifecycle: {preStop: {sleep: {seconds: 20}}}",
			}
			w.podWith("stubborn", fmt.Sprintf("{terminationGracePeriodSeconds: 30, nodeSelector: {kubernetes.io/hostname: %s}, containers: [%s]}",
				node1, app.manifest()))
			u := w.container("stubborn", "app")
			w.allocatable(node2, level.resource("forced", instance), 0) // or the kubelet rejects the next Pod
			w.pod("next", node2, level.resource("forced", instance))
			w.pending("next")
			w.deleteWith("Pod", "stubborn", "gracePeriodSeconds=0")
			w.gone("stubborn")
			if !u.alive() {
				w.t.Error("the container ended with its object, so that the slot was free to be given")
			}
			next := w.container("next", "app")
			if u.alive() {
				w.t.Errorf("%v and %v run at the same time", u, next)
			}
			stop()
			w.delete("Pod", "next")
			w.gone("next")
			w.awaitUsage(instance)
		})
	}
}
