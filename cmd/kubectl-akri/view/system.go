package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/internal/finding"
)

// System is what the API server tells about Akri itself, and about the nodes.
type System struct {
	// Namespace is the one in which Akri is installed.
	Namespace string
	// Workloads are Akri's Deployments and DaemonSets. Searched reports whether all that
	// exist are known, so that what is not among them is missing.
	Workloads []Workload
	Searched  bool
	// Pods are those of all components.
	Pods []corev1.Pod
	// Guarded reports whether the API server asks the webhook about Configurations.
	Guarded bool
	// Nodes is nil if they may not be listed. Renewed is when each kubelet has renewed its
	// Lease, and Now is when anyone has: the time of the cluster.
	Nodes   []corev1.Node
	Renewed map[string]time.Time
	Now     time.Time
}

// Workload is a Deployment or a DaemonSet of a component.
type Workload struct {
	metav1.ObjectMeta
	Kind          string
	Wanted, Ready int32
	Template      corev1.PodTemplateSpec
}

// parts are the components of every installation, with what happens without them.
var parts = []struct{ component, impact string }{
	{Controller, "no objects of devices are created, repaired or deleted"},
	{Agent, "no devices are found, and Pods get none"},
	{Webhook, "the API server rejects new and changed Configurations"},
}

// ComponentOf returns the component that an object with these labels belongs to, or the
// name of a handler, or "".
func ComponentOf(labels map[string]string) string {
	name := strings.TrimPrefix(labels["app.kubernetes.io/name"], "akri-")
	if handler, found := strings.CutSuffix(name, "-discovery"); found && labels["app.kubernetes.io/part-of"] == "akri" {
		return handler
	}
	if slices.Contains(order, name) && name != labels["app.kubernetes.io/name"] {
		return name
	}
	return ""
}

// is reports whether the workload is a component, or registers a handler of that name.
func (w *Workload) is(component string) bool {
	own := ComponentOf(w.Labels)
	for i := range w.Template.Spec.Containers {
		for _, argument := range w.Template.Spec.Containers[i].Args {
			if name, found := strings.CutPrefix(argument, "--name="); found {
				return name == component
			}
		}
	}
	return own == component || strings.EqualFold(strings.ReplaceAll(own, "-", ""), component)
}

// AllProblems returns the problems of what every installation has.
func (s *System) AllProblems() []finding.Mistake {
	var found []finding.Mistake
	for _, part := range parts {
		found = append(found, s.Problems(part.component)...)
	}
	return found
}

// Problems returns why a component, or the handler of that name, does not work: it is
// missing, or has no Pods that are ready.
func (s *System) Problems(component string) []finding.Mistake {
	if s == nil {
		return nil
	}
	impact, required := "the handler finds no devices there", false
	for _, part := range parts {
		if part.component == component {
			impact, required = part.impact, component != Webhook || s.Guarded
		}
	}
	var found []finding.Mistake
	exists := slices.ContainsFunc(s.Pods, func(pod corev1.Pod) bool { return ComponentOf(pod.Labels) == component })
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.is(component) {
			exists = true
			found = append(found, s.broken(w, impact)...)
		}
	}
	if exists || !required || !s.Searched {
		return found
	}
	const remedy = "install it again, with the values that it had, which keeps Configurations, Instances and their objects: " +
		"helm upgrade --install -n %[1]s akri CHART, or kubectl apply --server-side -k config/default"
	switch {
	case len(s.Workloads) > 0 || len(s.Pods) > 0:
		return findingf(fmt.Sprintf(remedy, s.Namespace), "The %s is not installed: %s.", component, impact)
	case component == Agent: // for all of them
		return findingf(fmt.Sprintf(remedy, s.Namespace), "Akri is not installed: the cluster has no controller and no agents of it.")
	}
	return nil
}

// broken returns why a workload does not work. The Deployment works while one of its Pods
// is ready, and nodes have the agents' problems.
func (s *System) broken(w *Workload, impact string) []finding.Mistake {
	if w.Ready > 0 && (w.Kind == "Deployment" || w.is(Agent) || w.Ready >= w.Wanted) {
		return nil
	}
	name, object := fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name), fmt.Sprintf("-n %s %s/%s", w.Namespace, strings.ToLower(w.Kind), w.Name)
	if w.Wanted == 0 && w.Kind == "Deployment" {
		return findingf("kubectl scale --replicas=1 "+object, "%s has 0 replicas: %s.", name, impact)
	}
	if w.Wanted == 0 {
		for i := range s.Nodes {
			if cause, remedy := w.excludes(&s.Nodes[i]); cause != "" {
				return findingf(remedy, "%s runs on no node, since %s: %s.", name, cause, impact)
			}
		}
	}
	cause := "has no Pods"
	remedy := fmt.Sprintf("kubectl events -n %s --types=Warning has the reason", w.Namespace)
	for i := range s.Pods {
		pod := &s.Pods[i]
		problem := podProblem(pod)
		if problem == "" || pod.Namespace != w.Namespace || ComponentOf(pod.Labels) != ComponentOf(w.Labels) {
			continue
		}
		cause, remedy = "is not ready: "+problem, fmt.Sprintf("kubectl describe pod -n %s %s, and kubectl logs -n %[1]s %s", pod.Namespace, pod.Name, pod.Name)
		break
	}
	for _, revision := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		if w.Annotations[revision] > "1" {
			remedy = "kubectl rollout undo " + object + " returns to what ran before, if the last change of it is the cause; else " + remedy
		}
	}
	return findingf(remedy, "%s %s\nUntil then, %s.", name, cause, impact)
}

// excludes returns why a DaemonSet does not run on a node, and the command that lets it.
func (w *Workload) excludes(node *corev1.Node) (cause, remedy string) {
	selector := w.Template.Spec.NodeSelector
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if have, found := node.Labels[key]; !found || have != selector[key] {
			return fmt.Sprintf("its nodeSelector wants the label %s=%s, which node %s does not have", key, selector[key], node.Name),
				fmt.Sprintf("kubectl label node --overwrite %s %s=%s, or correct the nodeSelector", node.Name, key, selector[key])
		}
	}
	for _, taint := range node.Spec.Taints {
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), &taint, false) }
		automatic := strings.HasPrefix(taint.Key, "node.kubernetes.io/") // the DaemonSet controller adds tolerations
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !automatic && !slices.ContainsFunc(w.Template.Spec.Tolerations, tolerates) {
			return fmt.Sprintf("it does not tolerate the taint %s of node %s", taint.ToString(), node.Name),
				fmt.Sprintf("kubectl taint node %s %s-, or add a toleration", node.Name, taint.ToString())
		}
	}
	return "", ""
}

// agentProblem returns why a node has no agent that works, and what to do about it.
func (s *System) agentProblem(name string) (cause, remedy string) {
	if pod := s.agents()[name]; pod != nil {
		return podProblem(pod), fmt.Sprintf("kubectl describe pod -n %s %s, and kubectl logs -n %[1]s %s", pod.Namespace, pod.Name, pod.Name)
	}
	for i := range s.Workloads {
		for j := range s.Nodes {
			if w := &s.Workloads[i]; w.is(Agent) && s.Nodes[j].Name == name {
				return w.excludes(&s.Nodes[j])
			}
		}
	}
	return "", ""
}

// nodeProblem returns the predicate of a node whose kubelet does not work, or "". Its Lease
// is old most of a minute before the node is not Ready.
func (s *System) nodeProblem(name string) string {
	const maxAge = 25 * time.Second // it is renewed every ten
	if s == nil || s.Nodes == nil {
		return ""
	}
	i := slices.IndexFunc(s.Nodes, func(node corev1.Node) bool { return node.Name == name })
	if i < 0 {
		return "does not exist"
	}
	for _, condition := range s.Nodes[i].Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return strings.TrimSuffix("is not Ready: "+condition.Message, ": ")
		}
	}
	if renewed, found := s.Renewed[name]; found && s.Now.Sub(renewed) > maxAge {
		return fmt.Sprintf("has had no sign of life from its kubelet for %v", s.Now.Sub(renewed).Round(time.Second))
	}
	return ""
}
