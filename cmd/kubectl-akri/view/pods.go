package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
)

// unschedulable returns the scheduler's message if it finds no node for a Pod.
func unschedulable(pod *corev1.Pod) (message string, found bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message, true
		}
	}
	return "", false
}

// Requests reports whether a container of a Pod requests a resource.
func Requests(pod *corev1.Pod, resource string) bool {
	return advice.Requested(&pod.Spec)[resource] > 0
}

// Terminated reports whether all containers of a Pod have terminated for good.
func Terminated(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// nodeText names the node of a Pod.
func nodeText(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return "on no node yet"
	}
	return "on " + pod.Spec.NodeName
}

// PodState returns a Pod's phase, or the reason why one of its containers waits.
func PodState(pod *corev1.Pod) string {
	reason, _, _ := waitingContainer(pod)
	return cmp.Or(reason, pod.Status.Reason, string(pod.Status.Phase))
}

// failedPod explains why a Pod has failed.
func failedPod(pod *corev1.Pod, name string) []finding.Mistake {
	if pod.Status.Phase != corev1.PodFailed {
		return nil
	}
	why := strings.Trim(pod.Status.Reason+": "+pod.Status.Message, ": ")
	why = cmp.Or(why, "a container terminated with an error; check kubectl logs")
	remedy := "it is replaced with increasing back-off; if it keeps failing, check the agent there: kubectl akri nodes " + pod.Spec.NodeName
	if metav1.GetControllerOfNoCopy(pod) == nil {
		remedy = "create it again: no controller replaces it; kubectl akri nodes " + pod.Spec.NodeName + " shows the agent there"
	}
	return findingf(remedy, "%s has failed on %s: %s", name, pod.Spec.NodeName, why)
}

// replaced reports whether the controller of a Pod, if it has one Pod after the other, has
// created another since, which has not failed: then the Pod is history.
func replaced(pod *corev1.Pod, pods []corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return slices.ContainsFunc(pods, func(other corev1.Pod) bool {
		its := metav1.GetControllerOfNoCopy(&other)
		return owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "Job") && its != nil && its.UID == owner.UID &&
			other.Status.Phase != corev1.PodFailed && pod.CreationTimestamp.Before(&other.CreationTimestamp)
	})
}

// waitingPod explains why a container of a scheduled Pod does not start.
func waitingPod(pod *corev1.Pod, name string) []finding.Mistake {
	reason, message, container := waitingContainer(pod)
	if reason == "" || reason == "ContainerCreating" || reason == "PodInitializing" {
		return nil
	}
	remedy := fmt.Sprintf("kubectl describe pod -n %s %s", pod.Namespace, pod.Name)
	if reason == "CrashLoopBackOff" {
		remedy = fmt.Sprintf("kubectl logs -n %s %s -c %s --previous", pod.Namespace, pod.Name, container)
	}
	return findingf(remedy, "%s is on %s, but its container %s is not running: %s",
		name, pod.Spec.NodeName, container, strings.TrimSuffix(reason+": "+message, ": "))
}

// waitingContainer returns the first container of a Pod that waits, and why.
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
