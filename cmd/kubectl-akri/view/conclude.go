package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// Finding is something that keeps a device from being used.
type Finding struct {
	// What is the case, in a sentence.
	What string
	// Do is the remedy; empty if there is nothing to do.
	Do string
}

// rulesOfWhy are asked in this order, from what is wrong with the device to what is
// wrong with a Pod. All that have an answer are told.
var rulesOfWhy = []func(*Facts) []Finding{
	beingDeleted,
	noConfiguration,
	nobodySeesIt,
	nodeIsDown,
	notLookedAt,
	wrongTemplates,
	notApplied,
	waitingForSlot,
	podRefused,
	containerWaits,
	slotWithoutPod,
	notReady,
}

// Conclude says what is wrong with an Instance and what to do, or that all is
// well.
func Conclude(f *Facts) []Finding {
	var findings []Finding
	for _, rule := range rulesOfWhy {
		findings = append(findings, rule(f)...)
	}
	if len(findings) > 0 {
		return findings
	}
	return []Finding{{What: "All is well: everything asked for this device exists and is ready."}}
}

func findingf(do, format string, args ...any) []Finding {
	return []Finding{{What: fmt.Sprintf(format, args...), Do: do}}
}

func beingDeleted(f *Facts) []Finding {
	if f.Instance.DeletionTimestamp == nil {
		return nil
	}
	do := ""
	if len(f.Instance.Finalizers) > 0 {
		do = "it goes when its finalizers are done: " + strings.Join(f.Instance.Finalizers, ", ")
	}
	return findingf(do, "The Instance is being deleted.")
}

func noConfiguration(f *Facts) []Finding {
	if f.Configuration != nil {
		return nil
	}
	return findingf("delete the Instance, or apply that Configuration again",
		"Configuration %s does not exist: nothing is made for the device.", f.Instance.Spec.ConfigurationName)
}

func nobodySeesIt(f *Facts) []Finding {
	if len(f.Instance.Spec.Nodes) > 0 {
		return nil
	}
	what := "No node sees the device."
	if f.Configuration != nil {
		for _, failure := range f.Configuration.Status.DiscoveryFailures {
			what += fmt.Sprintf("\nDiscovery fails on node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message)
		}
	}
	return findingf("check that the device is switched on and reachable, and the log of the agent and of the discovery handler", "%s", what)
}

func nodeIsDown(f *Facts) []Finding {
	var findings []Finding
	for _, name := range f.Instance.Spec.Nodes {
		if complaint := f.nodeComplaint(name); complaint != "" {
			findings = append(findings, findingf("kubectl describe node "+name, "Node %s, which sees the device, %s.", name, verbal(complaint))...)
		}
	}
	return findings
}

func verbal(complaint string) string {
	if complaint == "not Ready" {
		return "is not Ready"
	}
	return complaint
}

func notLookedAt(f *Facts) []Finding {
	if len(f.Instance.Status.Conditions) > 0 || f.Configuration == nil {
		return nil
	}
	return findingf("see whether it runs, and its log: kubectl get deployments -A shows akri-controller",
		"The controller has not looked at the Instance yet.")
}

// wrongTemplates: the Configuration is not accepted, so its Instances stay as they
// are.
func wrongTemplates(f *Facts) []Finding {
	if f.Configuration == nil {
		return nil
	}
	accepted := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse {
		return nil
	}
	return findingf(remedyOf(accepted.Reason, f),
		"The templates of Configuration %s are not accepted (%s), so nothing changes until they are mended:\n%s", f.Configuration.Name, accepted.Reason, accepted.Message)
}

func notApplied(f *Facts) []Finding {
	applied := meta.FindStatusCondition(f.Instance.Status.Conditions, v0.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || applied.Reason == v0.ReasonUnknownOwner || len(wrongTemplates(f)) > 0 {
		return nil
	}
	return findingf(remedyOf(applied.Reason, f), "Not everything could be applied (%s):\n%s", applied.Reason, applied.Message)
}

// remedyOf is what to do about a condition's reason, beyond what its message says.
func remedyOf(reason string, f *Facts) string {
	configuration := f.Instance.Spec.ConfigurationName
	switch reason {
	case v0.ReasonForbidden:
		return fmt.Sprintf("kubectl akri rbac -n %s %s | kubectl apply -f -", f.Instance.Namespace, configuration)
	case v0.ReasonInvalidTemplate, v0.ReasonRefused:
		return "mend the Configuration; kubectl akri lint -f FILE checks it without the cluster"
	case v0.ReasonRenderFailed:
		return "the device has " + propertiesText(f.Instance.Spec.BrokerProperties) + "; correct the template, or set what is missing in spec.brokerProperties"
	case v0.ReasonKindUnavailable:
		return "install the CustomResourceDefinition; the controller notices"
	case v0.ReasonConflict, v0.ReasonImmutable, v0.ReasonApplyFailed:
		return fmt.Sprintf("kubectl akri diff -n %s %s shows what is wanted and what is there", f.Instance.Namespace, configuration)
	}
	return ""
}

func propertiesText(properties map[string]string) string {
	if len(properties) == 0 {
		return "no properties"
	}
	keys := make([]string, 0, len(properties))
	for key := range properties {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return "the properties " + strings.Join(keys, ", ")
}

// waitingForSlot: a Pod has no node, and asks for the device.
func waitingForSlot(f *Facts) []Finding {
	var findings []Finding
	for i := range f.Pods {
		pod := &f.Pods[i]
		message, waits := unschedulable(pod)
		if !waits {
			continue
		}
		resource := resourceOf(pod, f)
		if !strings.Contains(message, "Insufficient "+resource) {
			findings = append(findings, findingf("", "%s finds no node: %s", f.podName(pod), message)...)
			continue
		}
		findings = append(findings, f.slotShortage(pod, resource, message))
	}
	return findings
}

// unschedulable is what the scheduler says of a Pod that it has no node for.
func unschedulable(pod *corev1.Pod) (message string, waits bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message, true
		}
	}
	return "", false
}

// slotShortage says who has the slots that a Pod waits for.
func (f *Facts) slotShortage(pod *corev1.Pod, resource, message string) Finding {
	if resource == v0.ResourceName(f.Instance.Spec.ConfigurationName) {
		return Finding{
			What: fmt.Sprintf("%s waits for a node with %s, a device of the Configuration: %s", f.podName(pod), resource, message),
			Do:   "kubectl akri tree shows the slots of all its devices",
		}
	}
	var nodes, users []string
	free := 0
	for _, slot := range f.slots() {
		switch {
		case slot.owner.Free():
			free++
		case !slices.Contains(nodes, slot.owner.Node):
			nodes = append(nodes, slot.owner.Node)
		}
		for _, user := range f.usersOf(slot) {
			if !slices.Contains(users, user) {
				users = append(users, user)
			}
		}
	}
	all := "the only slot is"
	if n := f.Instance.Spec.Capacity; n > 1 {
		all = fmt.Sprintf("all %d slots are", n)
	}
	waits := fmt.Sprintf("%s waits for a node with %s: ", f.podName(pod), resource)
	switch {
	case free == 0 && len(nodes) > 0:
		holders := strings.Join(nodes, " and ")
		if len(users) > 0 {
			holders += " (" + strings.Join(users, ", ") + ")"
		}
		return Finding{
			What: waits + all + " held by " + holders + ".",
			Do:   "delete a Pod that uses the device, ask for fewer, or raise spec.capacity of the Configuration",
		}
	case len(f.Instance.Spec.Nodes) == 0:
		return Finding{What: waits + "no node sees the device."}
	}
	return Finding{
		What: waits + fmt.Sprintf("%d of %d slots are free, on %s. The scheduler says: %s", free, f.Instance.Spec.Capacity, strings.Join(f.Instance.Spec.Nodes, ", "), message),
		Do:   "the Pod must be able to run on a node that sees the device: look at its nodeSelector, affinity and tolerations, and at the agent there (kubectl describe node shows " + resource + ")",
	}
}

// resourceOf is the resource by which a Pod asks for the device.
func resourceOf(pod *corev1.Pod, f *Facts) string {
	if own := v0.ResourceName(f.Instance.Name); AsksFor(pod, own) {
		return own
	}
	return v0.ResourceName(f.Instance.Spec.ConfigurationName)
}

// AsksFor tells whether a container of a Pod asks for a resource.
func AsksFor(pod *corev1.Pod, resource string) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			_, limited := container.Resources.Limits[corev1.ResourceName(resource)]
			_, requested := container.Resources.Requests[corev1.ResourceName(resource)]
			if limited || requested {
				return true
			}
		}
	}
	return false
}

// podRefused: the kubelet did not let a Pod in, or evicted it.
func podRefused(f *Facts) []Finding {
	var findings []Finding
	for i := range f.Pods {
		pod := &f.Pods[i]
		if pod.Status.Phase != corev1.PodFailed {
			continue
		}
		why := pod.Status.Reason
		if pod.Status.Message != "" {
			why = strings.TrimPrefix(why+": "+pod.Status.Message, ": ")
		}
		if why == "" {
			why = "a container ended with an error; kubectl logs tells more"
		}
		findings = append(findings, findingf("it is replaced, less and less soon; if it fails again and again, look at the agent's log on "+pod.Spec.NodeName,
			"%s has failed on %s: %s", f.podName(pod), pod.Spec.NodeName, why)...)
	}
	return findings
}

// containerWaits: a Pod is on its node, and a container of it does not run.
func containerWaits(f *Facts) []Finding {
	var findings []Finding
	for i := range f.Pods {
		pod := &f.Pods[i]
		reason, message, container := waitingContainer(pod)
		if reason == "" || reason == "ContainerCreating" || reason == "PodInitializing" {
			continue
		}
		do := fmt.Sprintf("kubectl describe pod -n %s %s", pod.Namespace, pod.Name)
		if reason == "CrashLoopBackOff" {
			do = fmt.Sprintf("kubectl logs -n %s %s -c %s --previous", pod.Namespace, pod.Name, container)
		}
		findings = append(findings, findingf(do, "%s is on %s, and its container %s does not run: %s", f.podName(pod), pod.Spec.NodeName, container, strings.TrimSuffix(reason+": "+message, ": "))...)
	}
	return findings
}

func waitingContainer(pod *corev1.Pod) (reason, message, container string) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" {
				return waiting.Reason, waiting.Message, status.Name
			}
		}
	}
	return "", "", ""
}

// slotWithoutPod: a slot is held, and nobody is seen who could use it.
func slotWithoutPod(f *Facts) []Finding {
	if !f.AllPods {
		return nil
	}
	var findings []Finding
	for _, slot := range f.slots() {
		if slot.owner.Free() || len(f.usersOf(slot)) > 0 {
			continue
		}
		findings = append(findings, findingf("the agent there frees it within minutes; if it does not, see its log",
			"Slot %s is held by node %s, and no Pod there asks for the device.", slot.name, slot.owner.Node)...)
	}
	return findings
}

// runningPods are kinds whose objects are ready when their Pods are.
var runningPods = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}

// notReady: an object is applied and not ready, and no Pod said why.
func notReady(f *Facts) []Finding {
	if meta.IsStatusConditionFalse(f.Instance.Status.Conditions, v0.ConditionApplied) {
		return nil
	}
	told := len(waitingForSlot(f)) > 0 || len(podRefused(f)) > 0 || len(containerWaits(f)) > 0
	var findings []Finding
	for _, resource := range f.Instance.Status.Resources {
		if resource.Ready || told && slices.Contains(runningPods, resource.Kind) {
			continue
		}
		findings = append(findings, findingf(fmt.Sprintf("kubectl describe %s -n %s %s", strings.ToLower(resource.Kind), cmp.Or(resource.Namespace, f.Instance.Namespace), resource.Name),
			"%s %s is not ready: %s", resource.Kind, resource.Name, resource.Reason)...)
	}
	return findings
}
