// Package metadata reduces the metadata of Configurations and Instances to what Akri
// reads, before a cache stores it.
//
// Users who may patch an object may give it a megabyte of labels, finalizers or owners,
// and the schema of a CRD cannot restrict metadata. The policy akri-metadata bounds most
// of it, but not what was stored before, and not annotations.
//
// Always: what is kept has a bound, except the labels of nodes, which the policy bounds.
// What is kept of owner references has the same index as before, and a map that had
// entries is not nil: JSON patches depend on both.
//
// Never: an object with reduced metadata is sent to the API server.
package metadata

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	// maxValue is the number of bytes of an annotation that are kept. That of a device ID
	// is the longest.
	maxValue = 4096
	// maxOwnerField is the same for the fields of an owner reference. UIDs and kinds are
	// shorter.
	maxOwnerField = 64
)

// IsNewer reports whether a resourceVersion is known to be later than another. Objects
// with different UIDs can be compared: the versions of one API server only grow.
func IsNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// Identity returns which object it is, in which version, and its times. Agents read no more
// of a Configuration's metadata.
func Identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Generation: object.GetGeneration(), ResourceVersion: object.GetResourceVersion(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp(),
	}
}

// OfConfiguration returns what the controller reads of a Configuration's metadata: in
// addition to its [Identity], some finalizers, and the label of kubectl akri discover.
func OfConfiguration(object metav1.Object) metav1.ObjectMeta {
	reduced := Identity(object)
	reduced.Labels = keep(object.GetLabels(), func(key string) bool { return key == v0.LabelDiscoverUntil })
	reduced.Finalizers = finalizers(object.GetFinalizers())
	return reduced
}

// OfInstance returns what is read of an Instance's metadata: in addition, the labels and
// annotations of Akri, and the UIDs and kinds of the first owners.
func OfInstance(object metav1.Object) metav1.ObjectMeta {
	reduced := OfConfiguration(object)
	reduced.Labels = keep(object.GetLabels(), func(key string) bool { return key == v0.LabelConfiguration || v0.IsNodeLabel(key) })
	reduced.Annotations = keep(object.GetAnnotations(), func(key string) bool {
		return key == v0.AnnotationDeviceID || key == v0.AnnotationServiceAccount || key == v0.AnnotationFormerDevicePaths
	})
	reduced.OwnerReferences = owners(object.GetOwnerReferences())
	return reduced
}

// IsOfNode reports whether a finalizer can be one of the original Akri: the name of a node.
// Finalizers of others have a domain, except those of Kubernetes.
func IsOfNode(finalizer string) bool {
	return !strings.Contains(finalizer, "/") &&
		finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents
}

// finalizers returns the controller's own finalizer, those of Kubernetes, and the first
// that can be one of the original Akri.
func finalizers(all []string) []string {
	var kept []string
	for _, name := range []string{v0.FinalizerCleanup, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		if slices.Contains(all, name) {
			kept = append(kept, name)
		}
	}
	if i := slices.IndexFunc(all, IsOfNode); i >= 0 {
		kept = append(kept, all[i])
	}
	return kept
}

// keep returns the entries of a map whose keys are read.
func keep(all map[string]string, read func(key string) bool) map[string]string {
	if all == nil {
		return nil
	}
	kept := map[string]string{}
	for key, value := range all {
		if read(key) {
			kept[key] = text.Truncate(value, maxValue)
		}
	}
	return kept
}

// owners returns the first owners, without their names.
func owners(all []metav1.OwnerReference) []metav1.OwnerReference {
	if all == nil {
		return nil
	}
	kept := make([]metav1.OwnerReference, min(len(all), v0.MaxOwnerReferences))
	for i := range kept {
		kept[i] = metav1.OwnerReference{
			UID:        UID(all[i].UID),
			Kind:       text.Truncate(all[i].Kind, maxOwnerField),
			Controller: all[i].Controller,
		}
	}
	return kept
}

// UID returns the UID of an owner, or a part of it: who writes the reference chooses its
// length.
func UID(owner types.UID) types.UID { return types.UID(text.Truncate(string(owner), maxOwnerField)) }
