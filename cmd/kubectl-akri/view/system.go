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
	"k8s.io/utils/ptr"

	"akri.sh/akri/internal/finding"
)

// System is what the API server tells about Akri itself, and about the nodes.
type System struct {
	// Namespace is the one in which Akri was searched at least.
	Namespace string
	// Workloads are Akri's. Searched reports whether these are all.
	Workloads []Workload
	Searched  bool
	Pods      []corev1.Pod // of all components
	// Guarded reports whether the API server asks the webhook about Configurations.
	Guarded bool
	Nodes   []corev1.Node // nil if they may not be listed
	// Renewed is when the holders of Leases, such as kubelets, have renewed them, by name.
	Renewed map[string]time.Time
}

// Workload is what matters of a Deployment or a DaemonSet.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int32                 `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas          int32 `json:"readyReplicas"`
		NumberReady            int32 `json:"numberReady"`
		DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`
	} `json:"status"`
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

// Problems returns why components, or handlers of these names, do not work: they are
// missing, or have no Pods that are ready.
func (s *System) Problems(components ...string) (found []finding.Mistake) {
	for _, component := range components {
		if s == nil {
			break
		}
		is := func(labels map[string]string) bool { // a name in labels has dashes instead of capital letters
			return strings.EqualFold(strings.ReplaceAll(ComponentOf(labels), "-", ""), strings.ReplaceAll(component, "-", ""))
		}
		exists := slices.ContainsFunc(s.Pods, func(pod corev1.Pod) bool { return is(pod.Labels) })
		for i := range s.Workloads {
			if w := &s.Workloads[i]; is(w.Labels) {
				exists = true
				found = append(found, s.broken(w)...)
			}
		}
		if impact := impacts[component]; !exists && s.Searched && impact != "" && (component != Webhook || s.Guarded) {
			found = append(found, findingf("install it again, which keeps Configurations, Instances and their objects: kubectl apply "+
				"--server-side -k config/default, or with its values: helm upgrade --install -n "+s.Namespace+" akri CHART",
				"Akri's %s is not installed: %s.", component, impact)...)
		}
	}
	return found
}

// broken returns why a workload does not work. A Deployment works while one of its Pods is
// ready, and agents have problems of their nodes.
func (s *System) broken(w *Workload) []finding.Mistake {
	component := ComponentOf(w.Labels)
	wanted, ready := ptr.Deref(w.Spec.Replicas, w.Status.DesiredNumberScheduled), w.Status.ReadyReplicas+w.Status.NumberReady
	if ready > 0 && (w.Kind == "Deployment" || component == Agent || ready >= wanted) {
		return nil
	}
	object := fmt.Sprintf("-n %s %s/%s", w.Namespace, strings.ToLower(w.Kind), w.Name)
	cause, remedy := "it has no Pods", fmt.Sprintf("kubectl events -n %s --types=Warning has the reason", w.Namespace)
	switch {
	case wanted == 0 && w.Kind == "Deployment":
		cause, remedy = "it has 0 replicas", "kubectl scale --replicas=1 "+object
	case wanted == 0 && len(s.Nodes) > 0:
		cause, remedy = w.excludes(&s.Nodes[0])
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if problem := podProblem(pod); problem != "" && ComponentOf(pod.Labels) == component && (wanted > 0 || w.Kind == "DaemonSet") {
			cause, remedy = problem, podRemedy(pod)
			if complaint := s.nodeProblem(pod.Spec.NodeName); complaint != "" {
				return findingf(nodeRemedy(pod.Spec.NodeName), "%s %s/%s is not ready: node %s %s.", w.Kind, w.Namespace, w.Name,
					pod.Spec.NodeName, complaint)
			}
		}
	}
	for _, revision := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		if wanted > 0 && w.Annotations[revision] > "1" {
			remedy = "kubectl rollout undo " + object + " if its last change is the cause; else " + remedy
		}
	}
	impact, found := impacts[component]
	if !found {
		impact = "the handler does not find devices there"
	}
	return findingf(remedy, "%s %s/%s is not ready, so %s:\n%s", w.Kind, w.Namespace, w.Name, impact, cause)
}

// podRemedy returns the commands that tell why a Pod of Akri does not work.
func podRemedy(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl describe pod -n %s %s, and kubectl logs -n %[1]s %s", pod.Namespace, pod.Name, pod.Name)
}

// nodeRemedy returns what tells why a node does not work.
func nodeRemedy(name string) string {
	return "kubectl describe node " + name + ", and on the node: systemctl status kubelet"
}

// excludes returns why a DaemonSet does not run on a node, and the command that lets it.
func (w *Workload) excludes(node *corev1.Node) (cause, remedy string) {
	for _, key := range slices.Sorted(maps.Keys(w.Spec.Template.Spec.NodeSelector)) {
		if value := w.Spec.Template.Spec.NodeSelector[key]; node.Labels[key] != value {
			return fmt.Sprintf("the nodeSelector of DaemonSet %s wants %s=%s, which node %s does not have", w.Name, key, value, node.Name),
				fmt.Sprintf("kubectl label node --overwrite %s %s=%s, or correct the nodeSelector", node.Name, key, value)
		}
	}
	for _, taint := range node.Spec.Taints {
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), &taint, false) }
		automatic := strings.HasPrefix(taint.Key, "node.kubernetes.io/") // the DaemonSet controller adds tolerations
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !automatic && !slices.ContainsFunc(w.Spec.Template.Spec.Tolerations, tolerates) {
			return fmt.Sprintf("DaemonSet %s does not tolerate the taint %s of node %s", w.Name, taint.ToString(), node.Name),
				fmt.Sprintf("kubectl taint node %s %s-, or add a toleration", node.Name, taint.ToString())
		}
	}
	return "no Pod of DaemonSet " + w.Name + " is on node " + node.Name, "kubectl events -n " + w.Namespace + " --types=Warning"
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
				return w.excludes(&s.Nodes[j])
			}
		}
	}
	return "", ""
}

// nodeProblem returns what is wrong with a node, or "". The Lease of its kubelet is old most
// of a minute before the node is not Ready.
func (s *System) nodeProblem(name string) string {
	const maxAge = 25 * time.Second // a kubelet renews it every ten
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
	for _, other := range s.Renewed {
		if renewed, found := s.Renewed[name]; found && other.Sub(renewed) > maxAge { // by the clocks of the cluster
			return fmt.Sprintf("is silent: its kubelet has not renewed its Lease since %s", renewed.UTC().Format(time.TimeOnly+" MST"))
		}
	}
	return ""
}
