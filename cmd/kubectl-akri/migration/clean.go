package migration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Action is a removal of something that the original Akri has left.
type Action struct {
	// Keep says that nothing is removed, because somebody else uses the object.
	Keep bool
	// Traces are what its agents left on the object; nil deletes the object.
	Traces *Traces
	Object Object
	Why    string
}

// Traces are what Akri's agents left on a Configuration or an Instance.
type Traces struct {
	Finalizers []string // bare names of nodes
	Managers   []string // field managers that applied
}

// String describes the action.
func (a Action) String() string {
	if a.Keep {
		return fmt.Sprintf("keep %s: %s", a.Object, a.Why)
	}
	if a.Traces == nil {
		return fmt.Sprintf("delete %s: %s", a.Object, a.Why)
	}
	var parts []string
	if len(a.Traces.Finalizers) > 0 {
		parts = append(parts, "finalizers "+strings.Join(a.Traces.Finalizers, ", "))
	}
	if len(a.Traces.Managers) > 0 {
		parts = append(parts, "field managers "+strings.Join(a.Traces.Managers, ", "))
	}
	return fmt.Sprintf("edit %s: remove %s", a.Object, strings.Join(parts, "; "))
}

// Clean returns what to remove, in order, and what is kept. It fails if the new Akri does
// not run yet, or the original still does: then what it has left is in use.
func Clean(f *Facts) ([]Action, error) {
	if err := complete(f); err != nil {
		return nil, err
	}
	var actions []Action
	for i := range f.Configurations {
		actions = appendTraces(actions, f, "configurations.akri.sh", &f.Configurations[i])
	}
	for i := range f.Instances {
		actions = appendTraces(actions, f, "instances.akri.sh", &f.Instances[i])
	}
	actions = append(actions, surplus(f)...)
	for _, webhook := range f.originalWebhooks() {
		actions = append(actions, Action{
			Object: Object{"validatingwebhookconfigurations.admissionregistration.k8s.io", "", webhook.Name}, Why: "Akri's admission webhook",
		})
	}
	actions = append(actions, f.chart()...)
	if f.Release != nil {
		for _, name := range f.Release.Secrets {
			actions = append(actions, Action{
				Object: Object{"secrets", f.Release.Namespace, name}, Why: "Helm's record of the release " + f.Release.Name,
			})
		}
	}
	// Last, because they say what else there is: after an interruption, the next run still finds it.
	for _, w := range f.stopped() {
		actions = append(actions, Action{Object: w.object(), Why: "Akri's " + string(w.Role()) + ", which is stopped"})
	}
	return actions, nil
}

// complete returns an error if the move is not complete, except for nodes that are not
// Ready.
func complete(f *Facts) error {
	for _, role := range []Role{RoleController, RoleAgent} {
		for _, w := range f.workloads(role) {
			if w.Running > f.away(w) || w.Desired > 0 {
				return fmt.Errorf("%s %s/%s still runs: stop it first, as kubectl akri migrate plan prints", w.Kind, w.Namespace, w.Name)
			}
		}
	}
	for _, role := range []Role{RoleNewController, RoleNewAgent} {
		if err := ready(f, role); err != nil {
			return err
		}
	}
	if f.Nodes == nil {
		return errors.New("nodes: they cannot be listed, so that those which no longer exist are unknown: use an account that may list nodes")
	}
	return nil
}

// ready returns an error unless there is a workload with a role, and its Pods are ready on
// all nodes that are Ready.
func ready(f *Facts, role Role) error {
	found := f.workloads(role)
	if len(found) == 0 {
		return fmt.Errorf("no %s is installed: install it first, as kubectl akri migrate plan prints", role)
	}
	for _, w := range found {
		if w.Ready < w.Desired-f.away(w) || w.Ready == 0 {
			return fmt.Errorf("%s %s/%s: %d of %d Pods are ready: wait for them, or see their logs",
				w.Kind, w.Namespace, w.Name, w.Ready, w.Desired)
		}
	}
	return nil
}

// away returns how many Pods of a workload may be on nodes that are not Ready.
func (f *Facts) away(w Workload) int32 {
	if w.Kind == "DaemonSet" {
		return int32(len(f.Down))
	}
	return 0
}

func appendTraces(actions []Action, f *Facts, resource string, object metav1.Object) []Action {
	if traces := TracesOn(object, f.Nodes); traces != nil {
		actions = append(actions, Action{Traces: traces, Object: Object{resource, object.GetNamespace(), object.GetName()}})
	}
	return actions
}

// TracesOn returns what Akri's agents left on an object, or nil.
//
// The agent of a node applies its finalizer, the bare name of the node, as NODE-fin; the
// device as NODE; and its slots as dp-NODE. The agents of this Akri patch, so the values
// are theirs to change; without its record, a manager owns nothing, and nothing else
// changes.
func TracesOn(object metav1.Object, nodes map[string]bool) *Traces {
	applied := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			applied[entry.Manager] = true
		}
	}
	agents := maps.Clone(nodes)
	if agents == nil {
		agents = map[string]bool{}
	}
	for manager := range applied {
		if node, found := strings.CutSuffix(manager, "-fin"); found {
			agents[node] = true
		}
		if node, found := strings.CutPrefix(manager, "dp-"); found {
			agents[node] = true
		}
	}
	var traces Traces
	for _, finalizer := range object.GetFinalizers() {
		if agents[finalizer] {
			traces.Finalizers = append(traces.Finalizers, finalizer)
		}
	}
	for node := range agents {
		for _, manager := range []string{node, node + "-fin", "dp-" + node} {
			if applied[manager] {
				traces.Managers = append(traces.Managers, manager)
			}
		}
	}
	if len(traces.Finalizers)+len(traces.Managers) == 0 {
		return nil
	}
	slices.Sort(traces.Finalizers)
	slices.Sort(traces.Managers)
	traces.Managers = slices.Compact(traces.Managers)
	return &traces
}

// Remove removes the traces from an object.
func (t *Traces) Remove(object metav1.Object) {
	object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return slices.Contains(t.Finalizers, name) }))
	object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && slices.Contains(t.Managers, entry.Manager)
	}))
}

// surplus returns the broker Pods of Akri that no template renders and that do not run:
// those for which there was no slot.
func surplus(f *Facts) []Action {
	left := map[string]bool{}
	for _, object := range Check(f).Objects {
		namespace, _, _ := strings.Cut(object.Configuration, "/")
		left[namespace+"/"+object.Object] = object.Outcome == Left
	}
	var actions []Action
	for i := range f.Pods {
		pod := &f.Pods[i]
		if broker(pod) && left[pod.Namespace+"/Pod "+pod.Name] && pod.Status.Phase != corev1.PodRunning {
			actions = append(actions, Action{
				Object: Object{"pods", pod.Namespace, pod.Name}, Why: "a broker without a slot, which is " + string(pod.Status.Phase),
			})
		}
	}
	return actions
}
