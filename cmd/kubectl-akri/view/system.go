package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/internal/finding"
)

// System is what the API server tells about Akri itself, and about the nodes.
type System struct {
	// Namespace is the only one in which Akri was searched, or "".
	Namespace string
	// Workloads are Akri's. Searched reports whether these are all.
	Workloads []Workload
	Searched  bool
	Pods      []corev1.Pod  // of all components
	Nodes     []corev1.Node // nil if they may not be listed
	// Unread lists what the user has no permission to read, so a cause may be missing.
	Unread []string
}

// Workload is what matters of a Deployment or a DaemonSet.
type Workload struct {
	metav1.ObjectMeta

	Kind          string
	Pod           corev1.PodSpec // of its template
	Wanted, Ready int32          // numbers of Pods
}

// impacts says what does not work without a component.
var impacts = map[string]string{
	Controller: "no objects of devices are created, repaired or deleted",
	Agent:      "no devices are found, and Pods get none",
	Webhook:    "the API server rejects new and changed Configurations",
}

// ComponentOf returns the component that an object with these labels belongs to, or the
// name of a handler, or "".
func ComponentOf(labels map[string]string) string {
	name, _ := strings.CutPrefix(labels["app.kubernetes.io/name"], "akri-")
	if handler, found := strings.CutSuffix(name, "-discovery"); found || slices.Contains(order, name) {
		return handler
	}
	return ""
}

// Problems returns why components, or handlers, do not work: they are missing, or have no Pods
// that are ready. Akri works without a webhook and without handlers, which may have other names.
func (s *System) Problems(components ...string) (found []finding.Mistake) {
	for _, component := range components {
		if s == nil {
			break
		}
		for i := range s.Workloads {
			if w := &s.Workloads[i]; isOf(component, w.Labels) {
				found = append(found, s.broken(w)...)
			}
		}
		if !s.Has(component) && s.Searched && (component == Controller || component == Agent) {
			state, remedy := "installed", "install it again, which keeps Configurations, Instances and their objects: kubectl apply "+
				"--server-side -k config/default, or with its values: helm upgrade --install -n akri-system akri CHART"
			if s.Namespace != "" {
				state, remedy = "in namespace "+s.Namespace+" (-n)", "without -n, all namespaces are searched"
			}
			found = append(found, findingf(remedy, "Akri's %s is not %s: %s.", component, state, impacts[component])...)
		}
	}
	return found
}

// Has reports whether there is a component, or a handler, as far as its parts may be listed.
func (s *System) Has(component string) bool {
	return slices.ContainsFunc(s.Pods, func(pod corev1.Pod) bool { return isOf(component, pod.Labels) }) ||
		slices.ContainsFunc(s.Workloads, func(w Workload) bool { return isOf(component, w.Labels) })
}

// isOf reports whether an object with these labels belongs to a component.
func isOf(component string, labels map[string]string) bool {
	// debugEcho has the label debug-echo.
	return strings.EqualFold(strings.ReplaceAll(ComponentOf(labels), "-", ""), strings.ReplaceAll(component, "-", ""))
}

// broken returns why a component does not work. It works while one of its Pods is ready, and
// agents have problems of their nodes.
func (s *System) broken(w *Workload) []finding.Mistake {
	component := ComponentOf(w.Labels)
	if w.Ready > 0 {
		return nil
	}
	object := fmt.Sprintf("-n %s %s/%s", w.Namespace, strings.ToLower(w.Kind), w.Name)
	cause, remedy := "it has no Pods", fmt.Sprintf("kubectl events -n %s --types=Warning has the reason", w.Namespace)
	switch {
	case w.Wanted == 0 && w.Kind == "Deployment":
		cause, remedy = "it has 0 replicas", "kubectl scale --replicas=1 "+object
	case w.Wanted == 0:
		cause, remedy = "no node matches its nodeSelector and tolerations", placement
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if problem := podProblem(pod); problem != "" && ComponentOf(pod.Labels) == component && (w.Wanted > 0 || w.Kind == "DaemonSet") {
			cause, remedy = problem, podRemedy(pod)
			if complaint := s.nodeProblem(pod.Spec.NodeName); complaint != "" {
				cause, remedy = fmt.Sprintf("node %s %s", pod.Spec.NodeName, complaint), nodeRemedy(pod.Spec.NodeName)
			}
		}
	}
	for _, revision := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		if w.Wanted > 0 && w.Annotations[revision] > "1" {
			remedy = "kubectl rollout undo " + object + " if its last change is the cause; else " + remedy
		}
	}
	return findingf(remedy, "%s %s/%s is not ready, so %s:\n%s", w.Kind, w.Namespace, w.Name,
		cmp.Or(impacts[component], "devices of this kind are not found"), cause)
}

// podRemedy returns the commands that tell why a Pod of Akri does not work.
func podRemedy(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl describe pod -n %s %s, and kubectl logs -n %[1]s %s", pod.Namespace, pod.Name, pod.Name)
}

// nodeRemedy returns what tells why a node does not work.
func nodeRemedy(name string) string {
	return "kubectl describe node " + name + ", and on the node: systemctl status kubelet"
}

// placement is what lets a DaemonSet run on more nodes.
const placement = "if it should run there: correct nodeSelector or tolerations of the DaemonSet (in the chart, those of " +
	"agent or of handlers.NAME); kubectl events -A --types=Warning has other reasons"

// excludes returns why a DaemonSet does not run on a node.
func (w *Workload) excludes(node *corev1.Node) string {
	for _, key := range slices.Sorted(maps.Keys(w.Pod.NodeSelector)) {
		if value := w.Pod.NodeSelector[key]; node.Labels[key] != value {
			return fmt.Sprintf("the nodeSelector of DaemonSet %s requires %s=%s, which node %s does not have", w.Name, key, value, node.Name)
		}
	}
	for _, taint := range node.Spec.Taints {
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), &taint, false) }
		automatic := strings.HasPrefix(taint.Key, "node.kubernetes.io/") // the DaemonSet controller adds tolerations
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !automatic && !slices.ContainsFunc(w.Pod.Tolerations, tolerates) {
			return fmt.Sprintf("DaemonSet %s does not tolerate the taint %s of node %s", w.Name, taint.ToString(), node.Name)
		}
	}
	return "no Pod of DaemonSet " + w.Name + " is on node " + node.Name
}

// agentProblem returns why a node has no agent that works, and what to do about it.
func (s *System) agentProblem(name string) (cause, remedy string) {
	if s == nil {
		return "", ""
	}
	if pod := s.agents()[name]; pod != nil {
		return podProblem(pod), podRemedy(pod)
	}
	for i := range s.Workloads {
		for j := range s.Nodes {
			if w := &s.Workloads[i]; ComponentOf(w.Labels) == Agent && s.Nodes[j].Name == name {
				return w.excludes(&s.Nodes[j]), placement
			}
		}
	}
	return "", ""
}

// nodeProblem returns what is wrong with a node, or "". A Pod that is not scheduled has none.
func (s *System) nodeProblem(name string) string {
	if name == "" || s == nil || s.Nodes == nil {
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
	return ""
}
