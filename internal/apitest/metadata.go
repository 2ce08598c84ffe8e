package apitest

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// hugeMetadata returns metadata, by what is large of it: about as much of each as the API
// server stores, or, of annotations, accepts.
func hugeMetadata() map[string]*metav1.ObjectMeta {
	const size = 1 << 20
	text, number := strings.Repeat("x", size), size/100
	labels := make(map[string]string, number)
	finalizers, unqualified := make([]string, number), make([]string, number)
	owners := make([]metav1.OwnerReference, number)
	for i := range number {
		name := fmt.Sprintf("%05d-%050d", i, 0)
		labels["example.com/"+name] = name[:40]
		finalizers[i], unqualified[i] = "example.com/"+name, "node-"+name
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name)}
	}
	return map[string]*metav1.ObjectMeta{
		"labels":      {Labels: labels},
		"annotations": {Annotations: map[string]string{"example.com/a": text[:size/4]}},
		"annotations of ours": {Annotations: map[string]string{
			v0.AnnotationDeviceID: text[:size/8], v0.AnnotationServiceAccount: text[:size/8],
		}},
		"finalizers":          {Finalizers: finalizers},
		"finalizers of nodes": {Finalizers: unqualified},
		"owners":              {OwnerReferences: owners},
		"an owner": {OwnerReferences: []metav1.OwnerReference{
			{APIVersion: text[:size/4], Kind: text[:size/4], Name: text[:size/4], UID: types.UID(text[:size/4]), Controller: new(true)},
		}},
	}
}
