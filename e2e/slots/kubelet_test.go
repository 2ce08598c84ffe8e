package slots

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// residents are the Pods of a node whose containers must survive what happens to its
// kubelet and agent.
type residents struct {
	w         *world
	instances map[string]string
	owners    map[string][]string // of the slots, by Instance
	users     []user
}

// settle creates Pods on node1 for the only Configuration of the test: one at each level,
// and one with a sidecar.
func (w *world) settle(configuration string) *residents {
	w.t.Helper()
	devices := []string{configuration + "0", configuration + "1"}
	r := &residents{w: w, instances: w.configuration(configuration, 5, devices...), owners: map[string][]string{}}
	for _, level := range levels {
		app := container{name: "app", resources: limit(level.resource(configuration, r.instances[devices[0]]), 1)}
		sidecar := app
		sidecar.name, sidecar.more = "sidecar", "restartPolicy: Always, args: [\"6053\"]"
		plain, both := "plain-"+strings.ToLower(level.name), "both-"+strings.ToLower(level.name)
		w.podWith(plain, podSpec(node1, nil, app))
		w.podWith(both, podSpec(node1, []container{sidecar}, app))
		r.users = append(r.users, w.container(plain, "app"), w.container(both, "sidecar"), w.container(both, "app"))
	}
	for _, instance := range r.instances {
		r.owners[instance] = w.usage(instance)
	}
	return r
}

// undisturbed fails the test if a container has restarted, or a slot has another owner.
func (r *residents) undisturbed(w *world) {
	w.t.Helper()
	for _, u := range r.users {
		if !u.alive() {
			w.t.Errorf("%v has ended", u)
		}
	}
	for instance := range r.owners {
		if got, want := w.usage(instance), r.owned(w, instance); !slices.Equal(got, want) {
			w.t.Errorf("%s is owned by %q, want %q", instance, got, want)
		}
	}
	for _, pod := range w.list("Pod", "") {
		if name := pod.Metadata.Name; name != crashing && pod.Status.Phase == "Failed" {
			w.t.Errorf("%s: %s %s", name, pod.Status.Reason, pod.Status.Message)
		}
	}
	w.consistent()
}

// crashing is a Pod on node1 whose container is in back-off.
const crashing = "crashing"

// owned returns the expected owners of an Instance's slots. The kubelet rejects a
// container that is not running if the plugin is not back within a second, which
// TestCrashLoopingPod is about: the slot of the crashing Pod is then free.
func (r *residents) owned(w *world, instance string) []string {
	w.t.Helper()
	for _, pod := range w.list("Pod", "") {
		if pod.Metadata.Name == crashing && pod.Status.Phase == "Failed" && instance == r.instances["restarts1"] {
			return removed(r.owners[instance], node1)
		}
	}
	return r.owners[instance]
}

// serves creates a Pod on node1 that uses another slot: the kubelet and the agent have
// recovered once it runs. Until the node's status shows that its devices are unhealthy,
// the scheduler binds Pods that the kubelet rejects: they are created again.
func (r *residents) serves(w *world, name string) {
	w.t.Helper()
	w.eventually(name+" runs", func() string {
		w.pod(name, node1, r.instances[r.users[0].devices[0]])
		state := ""
		w.eventually(name+" runs or fails", func() string {
			if o := w.get("Pod", name); o.Status.Phase == "Failed" {
				state = w.describe(name)
				return ""
			}
			if _, runs := w.of(name)["app"]; runs {
				return ""
			}
			return w.describe(name)
		})
		w.delete("Pod", name)
		w.gone(name)
		return state
	})
	w.eventually("the slot of "+name+" is free", func() string {
		for instance := range r.owners {
			if got, want := w.usage(instance), r.owned(w, instance); len(got) != len(want) {
				return fmt.Sprintf("%s is owned by %q, want %q", instance, got, want)
			}
		}
		return ""
	})
}

// What happens to a kubelet and its agent disturbs no running container, and frees no
// slot of one.
func TestKubeletRestarts(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	r := w.settle("restarts")
	resource := r.instances["restarts1"]
	w.crash(resource)
	for _, instance := range r.instances {
		r.owners[instance] = w.usage(instance)
	}

	w.step("kubelet restarted", func(w *world) {
		w.do("node1/kubelet", cluster.Restart)
		w.ready()
		r.serves(w, "after-restart")
		r.undisturbed(w)
	})
	w.step("kubelet killed", func(w *world) {
		w.do("node1/kubelet", cluster.Kill, cluster.Run)
		w.ready()
		r.serves(w, "after-kill")
		r.undisturbed(w)
	})
	w.step("kubelet and agent killed", func(w *world) {
		w.killAgent(node1)
		w.do("node1/kubelet", cluster.Kill, cluster.Run)
		w.ready()
		w.agentReady(node1)
		w.delete("Pod", crashing) // the kubelet may have rejected it
		w.gone(crashing)
		r.owners[resource] = removed(r.owners[resource], node1)
		w.awaitUsage(resource, r.owners[resource]...)
		r.serves(w, "after-both")
		r.undisturbed(w)
	})
	w.step("kubelet restarted without the agent", func(w *world) {
		start := w.withoutAgent(node1)
		w.do("node1/kubelet", cluster.Restart)
		w.ready()
		start()
		r.serves(w, "after-absence")
		r.undisturbed(w)
	})
	w.step("kubelet restarted without the API server", func(w *world) {
		w.do("kube-apiserver", cluster.Stop)
		start := w.undo(func(after *world) { after.do("kube-apiserver", cluster.Run) })
		w.do("node1/kubelet", cluster.Restart)
		// The kubelet lists no Pods to the agent until it has reached the API server.
		// Releases are tried every ten seconds.
		w.throughout(12*time.Second, "containers run", func() string { return r.ended() })
		start()
		w.ready()
		w.throughout(12*time.Second, "nothing is released", func() string {
			for instance, owners := range r.owners {
				if got := w.usage(instance); fmt.Sprint(got) != fmt.Sprint(owners) {
					return fmt.Sprintf("%s is owned by %q, before by %q", instance, got, owners)
				}
			}
			return r.ended()
		})
		r.serves(w, "after-outage")
		r.undisturbed(w)
		// After an outage of twenty seconds, its garbage collector takes up to 67 s to notice that a Configuration is deleted.
		w.do("kube-controller-manager", cluster.Restart)
	})
}

// crash creates a Pod that uses a device, and whose container ends again and again. The
// node's status may be older than the device: a Pod that is rejected is created again.
func (w *world) crash(resource string) {
	w.t.Helper()
	w.eventually("the crashing pod is in back-off", func() string {
		w.podWith(crashing, podSpec(node1, nil, container{name: "app", resources: limit(resource, 1), more: "args: [end]"}))
		pod := w.get("Pod", crashing)
		if pod.restarts() > 0 {
			return ""
		}
		state := w.describe(crashing)
		if pod.Status.Phase == "Failed" {
			w.delete("Pod", crashing)
			w.gone(crashing)
		}
		return state
	})
}

// A Pod whose container is in back-off survives a restart of the kubelet with its slot. The
// agent has about a second to register again, which may be too short on a busy machine: the
// Pod must survive one of some restarts.
func TestCrashLoopingPod(t *testing.T) {
	clustertest.Full(t)
	const restarts = 4
	w := newWorld(t)
	instance := w.configuration("loop", 1, "loop0")["loop0"]
	for range restarts {
		w.crash(instance)
		before := w.get("Pod", crashing).restarts()
		w.do("node1/kubelet", cluster.Restart)
		failed := false
		w.eventually("the container runs again, or the pod has failed", func() string {
			pod := w.get("Pod", crashing)
			if failed = pod.Status.Phase == "Failed"; failed || pod.restarts() > before {
				return ""
			}
			return w.describe(crashing)
		})
		if !failed {
			w.awaitUsage(instance, node1)
			return
		}
		t.Log(w.describe(crashing))
		w.delete("Pod", crashing)
		w.gone(crashing)
		w.awaitUsage(instance)
	}
	t.Errorf("the pod survived none of %d restarts of the kubelet", restarts)
}

// ended returns the containers that have ended, or "".
func (r *residents) ended() string {
	for _, u := range r.users {
		if !u.alive() {
			return u.String() + " has ended"
		}
	}
	return ""
}

// removed returns the owners without one that has the given name.
func removed(owners []string, name string) []string {
	for i, owner := range owners {
		if owner == name {
			return append(append([]string{}, owners[:i]...), owners[i+1:]...)
		}
	}
	return owners
}

// stallVariable is how long kubelets stall.
const stallVariable = "AKRI_E2E_STALL"

// A kubelet that stalls around an Allocate, or while the agent registers a resource,
// loses nothing.
func TestStalledKubelet(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	stall := lengthOf(t, stallVariable, 12*time.Second)
	r := w.settle("stalls")
	resume := func(w *world) func() {
		w.do("node1/kubelet", cluster.Pause)
		return w.undo(func(after *world) { after.do("node1/kubelet", cluster.Resume) })
	}

	w.step("after the claim", func(w *world) {
		resource := r.instances["stalls1"]
		claimed := make(chan struct{}, 100)
		before := len(r.owners[resource])
		stop := w.watch("Instance", func(e event) {
			if e.Object.Metadata.Name == resource && len(e.Object.Spec.DeviceUsage)-free(e.Object) > before {
				claimed <- struct{}{}
			}
		})
		defer stop()
		w.pod("late", node1, resource)
		select {
		case <-claimed:
		case <-time.After(timeout):
			w.t.Fatal("no slot is claimed for the pod")
		}
		now := resume(w)
		w.throughout(stall, "the slot stays owned", func() string {
			if got := w.usage(resource); len(got) != before+1 {
				return fmt.Sprintf("owned by %q", got)
			}
			return ""
		})
		now()
		w.container("late", "app")
		w.throughout(3*time.Second, "the slot stays owned", func() string {
			if got := w.usage(resource); len(got) != before+1 {
				return fmt.Sprintf("owned by %q", got)
			}
			return ""
		})
		w.delete("Pod", "late")
		w.gone("late")
		w.awaitUsage(resource, r.owners[resource]...)
		r.undisturbed(w)
	})

	w.step("while a resource is registered", func(w *world) {
		now := resume(w)
		instance := w.configuration("slow", 1, "slow0")["slow0"]
		w.throughout(stall, "containers run", func() string { return r.ended() })
		now()
		w.allocatable(node1, instance, 1)
		w.started("slow", node1, instance)
		w.delete("Pod", "slow")
		w.gone("slow")
		r.undisturbed(w)
	})
}

// free counts the free slots that the record names.
func free(instance object) int {
	count := 0
	for _, owner := range instance.Spec.DeviceUsage {
		if owner == "" {
			count++
		}
	}
	return count
}

// Sockets that somebody removes from the kubelet's directories are made again.
func TestRemovedSockets(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	r := w.settle("sockets")
	before := w.sockets(node1)
	if len(before) == 0 {
		t.Fatalf("the agent has no sockets in %s", w.KubeletDir(node1))
	}
	for _, file := range before {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("new sockets", func() string {
		if now := w.sockets(node1); len(now) < len(before) {
			return fmt.Sprintf("%d of %d", len(now), len(before))
		}
		return ""
	})
	for instance, owners := range r.owners {
		ids := strings.Count(strings.Join(owners, " "), "C:")
		w.allocatable(node1, instance, 5-ids)
	}
	r.serves(w, "after-removal")
	r.undisturbed(w)
}

// sockets returns the agent's sockets in the directories of a node's kubelet.
func (w *world) sockets(node string) []string {
	w.t.Helper()
	var files []string
	for _, dir := range []string{"plugins_registry", "device-plugins"} {
		found, err := filepath.Glob(filepath.Join(w.KubeletDir(node), dir, "*.sock"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, file := range found {
			if filepath.Base(file) != "kubelet.sock" {
				files = append(files, file)
			}
		}
	}
	return files
}

// A second agent on a node waits: it neither takes a resource over nor frees a slot. When
// the first is gone, it serves.
func TestTwoAgents(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	r := w.settle("agents")
	system := w.in("akri-system")
	first := w.agentReady(node1)
	template := w.kubectl("--namespace=akri-system", "get", "daemonset", "akri-agent", "--output=jsonpath={.spec.template.spec}")
	system.apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: second-agent}, spec: %s}`,
		strings.Replace(template, "{", `{"nodeName": "node1", `, 1)))
	remove := w.undo(func(after *world) { after.in("akri-system").delete("Pod", "second-agent") })
	w.eventually("two agents run", func() string {
		if running := w.agentProcesses(node1); len(running) != 2 {
			return fmt.Sprint(running)
		}
		return ""
	})
	r.serves(w, "with-two")
	if system.get("Pod", "second-agent").condition("Ready") {
		t.Error("the second agent is Ready next to the first")
	}
	if again := w.agentReady(node1); again.Metadata.UID != first.Metadata.UID {
		t.Error("the first agent was replaced")
	}
	r.undisturbed(w)
	system.delete("Pod", first.Metadata.Name)
	w.eventually("one of the waiting agents takes over", func() string {
		other, found := w.agent(node1)
		if system.get("Pod", "second-agent").condition("Ready") || found && other.Metadata.UID != first.Metadata.UID && other.condition("Ready") {
			return ""
		}
		return "none is Ready"
	})
	r.serves(w, "with-another")
	remove()
	w.agentReady(node1)
	r.serves(w, "with-one")
	r.undisturbed(w)
}

// A node that loses power and boots again: its Pods are started again or replaced, and
// have slots again.
func TestRebootedNode(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	instance := w.configuration("reboot", 2, "reboot0")["reboot0"]
	var owners []string
	for _, level := range levels {
		name := "user-" + strings.ToLower(level.name)
		w.deployment(name, 1, podSpec(node2, nil, container{name: "app", resources: limit(level.resource("reboot", instance), 1)}))
		w.readyPod(name, "")
		owners = append(owners, level.owner(node2))
	}
	slices.Sort(owners)
	w.awaitUsage(instance, owners...)
	w.do(node2, cluster.Kill)
	up := w.undo(func(after *world) { after.do(node2, cluster.Run) })
	w.throughout(3*time.Second, "the slots stay owned", func() string {
		if got := w.usage(instance); !slices.Equal(got, owners) {
			return fmt.Sprint(got)
		}
		return ""
	})
	up()
	w.ready()
	w.agentReady(node2)
	w.eventually("containers with the device", func() string {
		if users := w.usersOf("reboot0"); len(users) != len(owners) {
			return fmt.Sprintf("%v; failed: %s", users, w.failedPods())
		}
		return ""
	})
	w.awaitUsage(instance, owners...)
	w.consistent()
	t.Logf("rejected while the node booted: %s", w.failedPods())
}
