package nodes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is the availability of a node.
type State string

// The states.
const (
	Ready    State = "Ready"
	NotReady State = "NotReady" // or unknown: its Pods may still run
	Gone     State = "Gone"     // deleted: its Pods are garbage
)

// status is the state of a node, and which of several nodes of that name it is.
type status struct {
	state State
	uid   types.UID
}

// statusOf returns the status of a node; nil stands for a node that does not exist.
func statusOf(node *corev1.Node) status {
	if node == nil {
		return status{Gone, ""}
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	if ready {
		return status{Ready, node.UID}
	}
	return status{NotReady, node.UID}
}

// takesPods reports whether a node runs Pods that are created now. Of its taints, those of
// its state count: brokers may tolerate others.
func takesPods(node *corev1.Node) bool {
	return statusOf(node).state == Ready && !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Effect != corev1.TaintEffectPreferNoSchedule
	})
}

// Reduce returns a node with only the fields that this package reads, so that a
// cache of many nodes is small: its name and UID, whether it is
// Ready, as unschedulable whether it takes no Pods, and the resources of Akri that are 0.
func Reduce(node *corev1.Node) *corev1.Node {
	reduced := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}}
	reduced.Spec.Unschedulable = !takesPods(node)
	if statusOf(node).state == Ready {
		reduced.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	reduced.Status.Capacity = emptyResources(node)
	return reduced
}
