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

// State is what a node can do.
type State string

// The states.
const (
	Ready    State = "Ready"
	NotReady State = "NotReady" // or not heard of: its Pods may run all the same
	Gone     State = "Gone"     // its Pods are garbage
)

// stateOf is the state of a node, of which nil is one that does not exist, and
// the identity that it has in that state.
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

// addToScheme makes a manager understand nodes, and the Pods on them.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
}

// Reduce leaves of a node what this package reads, so that a cache of many nodes
// is small: name and identity, whether it is Ready, and Akri's resources of which
// it has none.
func Reduce(node *corev1.Node) *corev1.Node {
	reduced := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}}
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

// emptyResources are Akri's resources of which a node has none, sorted.
func emptyResources(node *corev1.Node) []corev1.ResourceName {
	var empty []corev1.ResourceName
	for resource, quantity := range node.Status.Capacity {
		if _, ours := nameIn(resource); !ours || !quantity.IsZero() {
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

// nameIn is the Instance or the Configuration whose resource it is.
func nameIn(resource corev1.ResourceName) (string, bool) {
	return strings.CutPrefix(string(resource), v0.ResourceName(""))
}

// sameNode tells whether two reduced nodes say the same.
func sameNode(a, b *corev1.Node) bool {
	stateA, uidA := stateOf(a)
	stateB, uidB := stateOf(b)
	names := func(node *corev1.Node) []corev1.ResourceName { return slices.Sorted(maps.Keys(node.Status.Capacity)) }
	return stateA == stateB && uidA == uidB && slices.Equal(names(a), names(b))
}
