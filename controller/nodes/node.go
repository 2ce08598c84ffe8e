package nodes

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// State is the availability of a node.
type State string

// The states.
const (
	Ready    State = "Ready"
	NotReady State = "NotReady" // or unknown: its Pods may still run
	Gone     State = "Gone"     // deleted: its Pods are garbage
)

// stateOf returns the state and the UID of a node; nil stands for a node that does
// not exist.
func stateOf(node *corev1.Node) (State, types.UID) {
	if node == nil {
		return Gone, ""
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	if ready {
		return Ready, node.UID
	}
	return NotReady, node.UID
}

// addToScheme registers nodes and Pods.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
}

// Reduce returns a node with only the fields that this package reads, so that a
// cache of many nodes is small: its name and UID, the status of its Ready
// condition, as unschedulable whether it takes no Pods, and the resources of Akri that are 0.
func Reduce(node *corev1.Node) *corev1.Node {
	reduced := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}}
	reduced.Spec.Unschedulable = !takesPods(node)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			reduced.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	for _, resource := range emptyResources(node) {
		if reduced.Status.Capacity == nil {
			reduced.Status.Capacity, reduced.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
		}
		reduced.Status.Capacity[resource] = node.Status.Capacity[resource]
		if allocatable, found := node.Status.Allocatable[resource]; found {
			reduced.Status.Allocatable[resource] = allocatable
		}
	}
	return reduced
}

// emptyResources returns the resources of Akri that are 0 on a node, sorted.
func emptyResources(node *corev1.Node) []corev1.ResourceName {
	var empty []corev1.ResourceName
	for resource, quantity := range node.Status.Capacity {
		if _, ok := nameIn(resource); !ok || !quantity.IsZero() {
			continue
		}
		if allocatable, found := node.Status.Allocatable[resource]; found && !allocatable.IsZero() {
			continue
		}
		empty = append(empty, resource)
	}
	slices.Sort(empty)
	return empty
}

// nameIn returns the name of the Instance or Configuration that a resource belongs
// to, and false if it is not a resource of Akri.
func nameIn(resource corev1.ResourceName) (string, bool) {
	return strings.CutPrefix(string(resource), v0.ResourceName(""))
}

// sameNode reports whether two reduced nodes are equal for this package.
func sameNode(a, b *corev1.Node) bool {
	stateA, uidA := stateOf(a)
	stateB, uidB := stateOf(b)
	names := func(node *corev1.Node) []corev1.ResourceName { return slices.Sorted(maps.Keys(node.Status.Capacity)) }
	return stateA == stateB && uidA == uidB && takesPods(a) == takesPods(b) && slices.Equal(names(a), names(b))
}
