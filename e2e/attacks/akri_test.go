package attacks

import (
	"fmt"
	"net/http"
	"strings"
)

// Pods returns the names of Akri's running Pods of one program.
func (w *world) pods(program string) []object {
	w.t.Helper()
	var found []object
	for _, pod := range w.list("Pod", akriSystem) {
		if pod.text("metadata", "labels", "app.kubernetes.io/name") == program && !pod.terminating() {
			found = append(found, pod)
		}
	}
	return found
}

// restarts returns how often Akri's containers have restarted, by Pod.
func (w *world) restarts() map[string]int {
	w.t.Helper()
	counts := map[string]int{}
	for _, pod := range w.list("Pod", akriSystem) {
		statuses, _ := pod.at("status", "containerStatuses").([]any)
		for _, status := range statuses {
			counts[pod.name()] += object(status.(map[string]any)).number("restartCount")
		}
	}
	return counts
}

// lastState says why a Pod's container has restarted.
func (w *world) lastState(pod string) string {
	statuses, _ := w.findIn("Pod", akriSystem, pod).at("status", "containerStatuses").([]any)
	if len(statuses) == 0 {
		return "unknown"
	}
	return fmt.Sprint(statuses[0].(map[string]any)["lastState"])
}

// logs returns the logs of all of Akri's Pods.
func (w *world) logs() string {
	w.t.Helper()
	var all strings.Builder
	for _, pod := range w.list("Pod", akriSystem) {
		a := w.admin.send(request{method: http.MethodGet, path: pathOf("Pod", akriSystem, pod.name()) + "/log"})
		all.WriteString(a.text)
	}
	return all.String()
}

// rollout waits until a Deployment of Akri's has only current Pods, which are ready.
func (w *world) rollout(deployment string) {
	w.t.Helper()
	w.eventually("rollout of "+deployment, func() string {
		d := w.findIn("Deployment", akriSystem, deployment)
		want := d.number("spec", "replicas")
		switch {
		case d.number("status", "observedGeneration") < d.number("metadata", "generation"):
			return "not observed"
		case d.number("status", "updatedReplicas") != want, d.number("status", "availableReplicas") != want,
			d.number("status", "replicas") != want:
			return fmt.Sprint(d["status"])
		}
		return ""
	})
}

// scale sets the number of the controller's replicas, and waits.
func (w *world) scale(replicas int) {
	w.t.Helper()
	w.must(w.admin.patch("Deployment", akriSystem, "akri-controller", fmt.Sprintf("spec: {replicas: %d}", replicas)))
	w.rollout("akri-controller")
	w.eventually("the controller's Pods", func() string {
		if found := len(w.pods("akri-controller")); found != replicas {
			return fmt.Sprintf("%d", found)
		}
		return ""
	})
}

// withoutController runs a function while no controller runs. What it writes is what
// the next controller finds.
func (w *world) withoutController(f func()) {
	w.t.Helper()
	w.scale(0)
	defer w.scale(1)
	f()
}

// skipWebhook makes the webhook skip the test's namespace: only the schema and the
// policies are left.
func (w *world) skipWebhook() {
	w.t.Helper()
	w.must(w.admin.patch("Namespace", "", w.namespace, "metadata: {labels: {akri.sh/admission: skip}}"))
	w.eventually("the webhook skips the namespace", func() string {
		// Only the webhook refuses this one: a template that does not compile.
		a := w.admin.create(configuration("probe-"+w.namespace, spec{instance: []string{configMap("{{", "")}}), "dryRun", "All")
		if !a.ok() {
			return a.String()
		}
		return ""
	})
}

// useWebhook undoes skipWebhook.
func (w *world) useWebhook() {
	w.t.Helper()
	w.must(w.admin.patch("Namespace", "", w.namespace, "metadata: {labels: {akri.sh/admission: null}}"))
	w.eventually("the webhook guards the namespace", func() string {
		a := w.admin.create(configuration("probe-"+w.namespace, spec{instance: []string{configMap("{{", "")}}), "dryRun", "All")
		if a.ok() {
			return "a template that does not compile is admitted"
		}
		return ""
	})
}

// grantController adds a rule to the controller's permissions for the test, as an
// operator would.
func (w *world) grantController(r rule) {
	w.t.Helper()
	name := "attacks-" + w.namespace
	w.must(w.admin.apply(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"akri.sh/aggregate-to-controller": "true"}},
		"rules":    rulesOf([]rule{r}),
	}))
	w.t.Cleanup(func() {
		w.api.send(contextWithout(w.t), request{method: http.MethodDelete, path: pathOf("ClusterRole", "", name)})
	})
	controller := w.impersonate("system:serviceaccount:akri-system:akri-controller", nil)
	w.eventually("the controller's new rights", func() string {
		if a := controller.send(request{method: http.MethodGet, path: pathOf("Secret", w.namespace, "")}); !a.ok() {
			return a.String()
		}
		return ""
	})
}

// agentOf returns the agent of a node, as its Pod's token identifies it.
func (w *world) agentOf(node string) *user {
	return w.impersonate("system:serviceaccount:akri-system:akri-agent", map[string]string{
		"authentication.kubernetes.io/node-name": node,
	}, "system:serviceaccounts", "system:serviceaccounts:akri-system")
}
