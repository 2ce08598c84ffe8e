package slots

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// do performs actions on a component of the cluster.
func (w *world) do(component string, actions ...cluster.Action) {
	w.t.Helper()
	for _, action := range actions {
		if err := w.Do(w.ctx, action, component); err != nil {
			w.t.Fatal(err)
		}
	}
}

// ready waits until the API server, the kubelets and the nodes are ready.
func (w *world) ready() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	if err := w.WaitReady(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// undo runs a function at the end of the test at the latest, and returns a function that
// runs it now. It runs once.
func (w *world) undo(f func(after *world)) (now func()) {
	done := false
	w.t.Cleanup(func() {
		if done {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), timeout)
		defer cancel()
		after := *w
		after.ctx = ctx
		f(&after)
	})
	return func() {
		done = true
		f(w)
	}
}

// agent returns the Pod of a node's agent.
func (w *world) agent(node string) (object, bool) {
	w.t.Helper()
	for _, pod := range w.in(akri.Namespace).list("Pod", "app.kubernetes.io/name=akri-agent") {
		if pod.Spec.NodeName == node && pod.Metadata.DeletionTimestamp == "" {
			return pod, true
		}
	}
	return object{}, false
}

// agentReady waits until a node's agent is Ready, and returns its Pod.
func (w *world) agentReady(node string) object {
	w.t.Helper()
	var found object
	w.eventually("the agent of "+node, func() string {
		pod, ok := w.agent(node)
		if !ok || !pod.condition("Ready") {
			return "not ready"
		}
		found = pod
		return ""
	})
	return found
}

// agentProcesses returns the processes of a node's agents.
func (w *world) agentProcesses(node string) []user {
	var found []user
	for _, u := range w.processes.running() {
		if _, isAgent := u.environment["NODE_NAME"]; isAgent && u.node == node {
			found = append(found, u)
		}
	}
	return found
}

// kill sends SIGKILL to processes.
func (w *world) kill(victims []user) {
	w.t.Helper()
	for _, u := range victims {
		pid, err := strconv.Atoi(u.pid)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			w.t.Logf("process %d of %s has exited: %v", pid, u.pod, err)
		}
	}
}

// killPods sends SIGKILL to the processes of one of Akri's workloads, and lets its
// controller create other Pods, which start without back-off.
func (w *world) killPods(workload string) {
	w.t.Helper()
	system := w.in(akri.Namespace)
	pods := system.list("Pod", "app.kubernetes.io/name="+workload)
	victims := slices.DeleteFunc(w.processes.running(), func(u user) bool {
		return !slices.ContainsFunc(pods, func(pod object) bool { return pod.Metadata.Name == u.pod })
	})
	if len(victims) == 0 {
		w.t.Logf("no process of %s runs", workload)
	}
	w.kill(victims)
	for _, pod := range pods {
		system.delete("Pod", pod.Metadata.Name)
	}
}

// killAgent sends SIGKILL to a node's agent and lets the DaemonSet create another Pod,
// which starts without back-off.
func (w *world) killAgent(node string) {
	w.t.Helper()
	w.kill(w.agentProcesses(node))
	if pod, found := w.agent(node); found {
		w.in(akri.Namespace).delete("Pod", pod.Metadata.Name)
	}
}

// withoutAgent stops the agent of a node. The function that it returns starts it again;
// the end of the test does, too.
func (w *world) withoutAgent(node string) (start func()) {
	w.t.Helper()
	system := w.in(akri.Namespace)
	// OnDelete: the agent of the other node is not replaced when the template changes.
	system.patch("DaemonSet", "akri-agent", fmt.Sprintf(`
spec:
  updateStrategy: {type: OnDelete, rollingUpdate: null}
  template:
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [%s]}]}]
`, node))
	start = w.undo(func(after *world) {
		after.in(akri.Namespace).patch("DaemonSet", "akri-agent", `
spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}, template: {spec: {affinity: null}}}`)
		after.agentReady(node)
	})
	w.eventually("the agent stops", func() string {
		if left := w.agentProcesses(node); len(left) > 0 {
			return fmt.Sprint(left)
		}
		return ""
	})
	return start
}

// loseAnswers drops what the API server sends to the agent of a node: requests arrive and
// are carried out, but remain unanswered. The function that it returns ends this; the
// end of the test does, too.
func (w *world) loseAnswers(node string) (restore func()) {
	w.t.Helper()
	address := w.agentReady(node).Status.PodIP + "/32"
	route := func(w *world, action string) {
		w.t.Helper()
		if err := w.Exec(w.ctx, cluster.Command{Args: []string{"ip", "route", action, "blackhole", address}}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		w.t.Fatalf("%v: install iproute2", err)
	}
	route(w, "add")
	return w.undo(func(after *world) { route(after, "del") })
}

// healthy fails the test if a component of the cluster has exited by itself, such as a
// kubelet that has panicked.
func (w *world) healthy() {
	w.t.Helper()
	components, err := w.Components(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range components {
		if c.Cause != "" {
			w.t.Errorf("%s %s", c.Name, c.Cause)
		}
	}
}

// kubectl runs kubectl in the test's namespace.
func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.ctx, append([]string{"--namespace", w.namespace}, arguments...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

// lengthOf returns how long a test takes: the duration in an environment variable, or
// else the default.
func lengthOf(t testing.TB, variable string, fallback time.Duration) time.Duration {
	t.Helper()
	text := envOr(variable, fallback.String())
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("%s=%q: want a duration such as 30m", variable, text)
	}
	return length
}
