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

// conclusion is a problem that prevents a device from being used.
type conclusion struct {
	// cause consists of complete sentences.
	cause string
	// hint is the remedy; empty if there is nothing to do.
	hint string
}

// whyRules are evaluated in this order, from problems of the device to problems of its
// Pods. All findings are shown.
var whyRules = []func(*Facts) []conclusion{
	instanceDeleted,      // The Instance has a deletion timestamp.
	configurationMissing, // Without its Configuration, nothing is created.
	deviceNotSeen,        // No node sees the device.
	nodeNotReady,         // A node that sees the device is down.
	notReconciled,        // The controller has not written a status.
	templatesNotAccepted, // The Configuration's templates have errors.
	notApplied,           // An object could not be applied.
	podUnschedulable,     // A Pod waits for a slot or for a node.
	podFailed,            // The kubelet rejected or evicted a Pod, or it failed.
	containerWaiting,     // A container of a scheduled Pod does not start.
	slotWithoutPod,       // A slot is in use, but no Pod requests it.
	objectNotReady,       // An applied object is not ready.
}

// conclude returns the problems of an Instance with their remedies, or the finding
// that there are none.
func conclude(f *Facts) []conclusion {
	var findings []conclusion
	for _, rule := range whyRules {
		findings = append(findings, rule(f)...)
	}
	if len(findings) > 0 {
		return findings
	}
	return []conclusion{{cause: "No problem found: all objects of this device exist and are ready."}}
}

func findingf(hint, format string, args ...any) []conclusion {
	return []conclusion{{cause: fmt.Sprintf(format, args...), hint: hint}}
}

func instanceDeleted(f *Facts) []conclusion {
	if f.Instance.DeletionTimestamp == nil {
		return nil
	}
	remedy := ""
	if len(f.Instance.Finalizers) > 0 {
		remedy = "it is deleted once its finalizers are removed: " + strings.Join(f.Instance.Finalizers, ", ")
	}
	return findingf(remedy, "The Instance is being deleted.")
}

func configurationMissing(f *Facts) []conclusion {
	if f.Configuration != nil {
		return nil
	}
	return findingf("delete the Instance, or apply that Configuration again",
		"Configuration %s does not exist, so no objects are created for the device.", f.Instance.Spec.ConfigurationName)
}

func deviceNotSeen(f *Facts) []conclusion {
	if len(f.Instance.Spec.Nodes) > 0 {
		return nil
	}
	var problem strings.Builder
	problem.WriteString("No node sees the device.")
	if f.Configuration != nil {
		for _, failure := range f.Configuration.Status.DiscoveryFailures {
			fmt.Fprintf(&problem, "\nDiscovery fails on node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message)
		}
	}
	return findingf("check that the device is switched on and reachable, and check the logs of the agent and the discovery handler",
		"%s", problem.String())
}

func nodeNotReady(f *Facts) []conclusion {
	var findings []conclusion
	for _, name := range f.Instance.Spec.Nodes {
		if complaint := f.nodeComplaint(name); complaint != "" {
			if complaint == "not Ready" {
				complaint = "is not Ready"
			}
			findings = append(findings, findingf("kubectl describe node "+name, "Node %s, which sees the device, %s.", name, complaint)...)
		}
	}
	return findings
}

func notReconciled(f *Facts) []conclusion {
	if meta.FindStatusCondition(f.Instance.Status.Conditions, v0.ConditionApplied) != nil || f.Configuration == nil {
		return nil
	}
	return findingf("check that akri-controller is running (kubectl get deployments -A), and check its log",
		"The controller has not reconciled the Instance yet.")
}

func templatesNotAccepted(f *Facts) []conclusion {
	if f.Configuration == nil {
		return nil
	}
	accepted := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse {
		return nil
	}
	return findingf(f.remedyOf(accepted.Reason),
		"The templates of Configuration %s are not accepted (%s); nothing changes until they are corrected:\n%s",
		f.Configuration.Name, accepted.Reason, accepted.Message)
}

func notApplied(f *Facts) []conclusion {
	applied := meta.FindStatusCondition(f.Instance.Status.Conditions, v0.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || applied.Reason == v0.ReasonConfigurationNotFound ||
		len(templatesNotAccepted(f)) > 0 {
		return nil
	}
	return findingf(f.remedyOf(applied.Reason), "Not all objects could be applied (%s):\n%s", applied.Reason, applied.Message)
}

func (f *Facts) remedyOf(reason string) string {
	if reason == v0.ReasonRenderFailed {
		return "the device has " + propertiesText(f.Instance.Spec.BrokerProperties) +
			"; correct the template, or set the missing property in spec.brokerProperties"
	}
	return remedyOf(reason, f.Instance.Namespace, f.Instance.Spec.ConfigurationName)
}

// remedyOf returns the remedy for a condition's reason, in addition to the message.
func remedyOf(reason, namespace, configuration string) string {
	switch reason {
	case v0.ReasonForbidden:
		return fmt.Sprintf("kubectl akri rbac -n %s %s | kubectl apply -f -", namespace, configuration)
	case v0.ReasonInvalidTemplate, v0.ReasonRefused, v0.ReasonRenderFailed:
		return "correct the Configuration; kubectl akri lint -f FILE checks it without a cluster"
	case v0.ReasonKindUnavailable:
		return "install the CustomResourceDefinition; the controller detects it"
	case v0.ReasonConflict, v0.ReasonImmutable, v0.ReasonApplyFailed:
		return fmt.Sprintf("kubectl akri diff -n %s %s shows the differences", namespace, configuration)
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

func podUnschedulable(f *Facts) []conclusion { return perPod(f.Pods, f.unschedulable) }

func podFailed(f *Facts) []conclusion { return perPod(f.Pods, f.failed) }

func containerWaiting(f *Facts) []conclusion { return perPod(f.Pods, f.waiting) }

// unschedulable explains why the scheduler finds no node for a Pod.
func (f *Facts) unschedulable(pod *corev1.Pod) []conclusion {
	message, found := unschedulable(pod)
	if !found {
		return nil
	}
	resource := resourceOf(pod, f)
	if !strings.Contains(message, "Insufficient "+resource) {
		return findingf("", "%s cannot be scheduled: %s", f.podName(pod), message)
	}
	return []conclusion{f.slotShortage(pod, resource, message)}
}

func (f *Facts) failed(pod *corev1.Pod) []conclusion { return failedPod(pod, f.podName(pod)) }

func (f *Facts) waiting(pod *corev1.Pod) []conclusion { return waitingPod(pod, f.podName(pod)) }

// slotShortage reports which Pods use the slots that a Pod waits for.
func (f *Facts) slotShortage(pod *corev1.Pod, resource, message string) conclusion {
	if resource == v0.ResourceName(f.Instance.Spec.ConfigurationName) {
		return conclusion{
			cause: fmt.Sprintf("%s waits for %s, any device of the Configuration: %s", f.podName(pod), resource, message),
			hint:  "kubectl akri why configuration/" + f.Instance.Spec.ConfigurationName,
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
	waits := fmt.Sprintf("%s waits for %s: ", f.podName(pod), resource)
	switch {
	case free == 0 && len(nodes) > 0:
		holders := strings.Join(nodes, " and ")
		if len(users) > 0 {
			holders += " (" + strings.Join(users, ", ") + ")"
		}
		return conclusion{
			cause: waits + all + " in use on " + holders + ".",
			hint:  "delete a Pod that uses the device, request fewer slots, or raise spec.capacity of the Configuration",
		}
	case len(f.Instance.Spec.Nodes) == 0:
		return conclusion{cause: waits + "no node sees the device."}
	}
	return conclusion{
		cause: waits + fmt.Sprintf("%d of %d slots are free, on %s. The scheduler reports: %s",
			free, f.Instance.Spec.Capacity, strings.Join(f.Instance.Spec.Nodes, ", "), message),
		hint: "the Pod must be able to run on a node that sees the device: check its nodeSelector, affinity and tolerations, " +
			"and the agent there (kubectl describe node shows " + resource + ")",
	}
}

// resourceOf returns the resource through which a Pod requests the device.
func resourceOf(pod *corev1.Pod, f *Facts) string {
	if own := v0.ResourceName(f.Instance.Name); Requests(pod, own) {
		return own
	}
	return v0.ResourceName(f.Instance.Spec.ConfigurationName)
}

func slotWithoutPod(f *Facts) []conclusion {
	if !f.AllPods {
		return nil
	}
	var findings []conclusion
	for _, slot := range f.slots() {
		if slot.owner.Free() || len(f.usersOf(slot)) > 0 {
			continue
		}
		findings = append(findings, findingf("the agent there frees it within minutes; if it does not, check its log",
			"Slot %s is in use on node %s, but no Pod there requests the device.", slot.name, slot.owner.Node)...)
	}
	return findings
}

// podKinds lists kinds whose objects are ready when their Pods are.
var podKinds = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}

// objectNotReady leaves out objects whose Pods have a finding already.
func objectNotReady(f *Facts) []conclusion {
	if meta.IsStatusConditionFalse(f.Instance.Status.Conditions, v0.ConditionApplied) {
		return nil
	}
	reported := len(podUnschedulable(f)) > 0 || len(podFailed(f)) > 0 || len(containerWaiting(f)) > 0
	var findings []conclusion
	for _, resource := range f.Instance.Status.Resources {
		if resource.Ready || reported && slices.Contains(podKinds, resource.Kind) {
			continue
		}
		remedy := fmt.Sprintf("kubectl describe %s -n %s %s",
			strings.ToLower(resource.Kind), cmp.Or(resource.Namespace, f.Instance.Namespace), resource.Name)
		findings = append(findings, findingf(remedy, "%s %s is not ready: %s", resource.Kind, resource.Name, resource.Reason)...)
	}
	return findings
}
