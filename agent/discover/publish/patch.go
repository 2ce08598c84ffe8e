package publish

import (
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// Paths of an Instance that patches name.
const (
	uidPath         = "/metadata/uid"
	versionPath     = "/metadata/resourceVersion"
	labelsPath      = "/metadata/labels"
	annotationsPath = "/metadata/annotations"
	ownersPath      = "/metadata/ownerReferences"
	nodesPath       = "/spec/nodes"
	propertiesPath  = "/spec/brokerProperties"
	changedPath     = "/spec/lastChangeTime"
)

// membership returns the operations that give an Instance the node's entry, and the
// labels and annotations that it is found by. They are empty if it has them.
func membership(have, want *v0.Instance) jsonpatch.Patch {
	var patch jsonpatch.Patch
	if node := want.Spec.Nodes[0]; !slices.Contains(have.Spec.Nodes, node) {
		// Without this test, the API server itself repeats the patch until it wins, and
		// a thousand nodes that join at once keep it busy for minutes.
		patch = append(patch, jsonpatch.Test(versionPath, have.ResourceVersion))
		patch = append(patch, appendTo(nodesPath, have.Spec.Nodes == nil, node)...)
	}
	patch = append(patch, setKeys(labelsPath, have.Labels, want.Labels)...)
	return append(patch, setKeys(annotationsPath, have.Annotations, want.Annotations)...)
}

// owned returns the operations that make an owner the controller of an Instance.
func owned(have []metav1.OwnerReference, want metav1.OwnerReference) jsonpatch.Patch {
	index := slices.IndexFunc(have, func(reference metav1.OwnerReference) bool { return reference.UID == want.UID })
	switch {
	case index < 0:
		return appendTo(ownersPath, have == nil, want)
	case ptr.Deref(have[index].Controller, false):
		return nil
	}
	path := ownersPath + jsonpatch.Pointer(strconv.Itoa(index))
	return jsonpatch.Patch{jsonpatch.Test(path+"/uid", want.UID), jsonpatch.Replace(path, want)}
}

// description returns the operations that make an Instance describe the device as
// wanted, and its Configuration the owner. Only the Instance's author sends them.
func description(have, want *v0.Instance, now time.Time) jsonpatch.Patch {
	var patch jsonpatch.Patch
	if have.Spec.CDIName != want.Spec.CDIName {
		patch = append(patch, jsonpatch.Replace("/spec/cdiName", want.Spec.CDIName))
	}
	if have.Spec.Capacity != want.Spec.Capacity {
		patch = append(patch, jsonpatch.Replace("/spec/capacity", want.Spec.Capacity))
	}
	if have.Spec.Shared != want.Spec.Shared {
		patch = append(patch, jsonpatch.Add("/spec/shared", want.Spec.Shared))
	}
	if !maps.Equal(have.Spec.BrokerProperties, want.Spec.BrokerProperties) {
		patch = append(patch, jsonpatch.Add(propertiesPath, want.Spec.BrokerProperties), jsonpatch.Add(changedPath, metav1.NewTime(now)))
	}
	patch = append(patch, owned(have.OwnerReferences, want.OwnerReferences[0])...)
	if len(patch) == 0 {
		return nil
	}
	author := jsonpatch.Test(nodesPath, have.Spec.Nodes) // nobody
	if len(have.Spec.Nodes) > 0 {
		author = jsonpatch.Test(nodesPath+"/0", have.Spec.Nodes[0])
	}
	return append(jsonpatch.Patch{author}, patch...) // by now, another node may be the author
}

// departure returns the operations that remove a node's entry and, if none of its
// containers has a slot, its label. The label is how the node's agent, also after a
// restart, finds the Instances whose slots it has to release.
func departure(have *v0.Instance, node string) jsonpatch.Patch {
	var patch jsonpatch.Patch
	if index := slices.Index(have.Spec.Nodes, node); index >= 0 {
		patch = append(patch, jsonpatch.Remove(nodesPath+jsonpatch.Pointer(strconv.Itoa(index))))
	}
	label := v0.NodeLabel(node)
	if _, found := have.Labels[label]; found && !holders(have, node).own {
		patch = append(patch, jsonpatch.Remove(labelsPath+jsonpatch.Pointer(label)))
	}
	if len(patch) == 0 {
		return nil
	}
	// By now, the entry may have another index, and a container a slot.
	return append(jsonpatch.Patch{jsonpatch.Test(versionPath, have.ResourceVersion)}, patch...)
}

// appendTo returns the operations that append to a list, which may be absent.
func appendTo(path string, absent bool, value any) jsonpatch.Patch {
	if absent {
		return jsonpatch.Patch{jsonpatch.Test(path, nil), jsonpatch.Add(path, []any{value})}
	}
	return jsonpatch.Patch{jsonpatch.Add(path+"/-", value)}
}

// setKeys returns the operations that set keys of a map, which may be absent.
func setKeys(path string, have, want map[string]string) jsonpatch.Patch {
	if have == nil && len(want) > 0 {
		return jsonpatch.Patch{jsonpatch.Test(path, nil), jsonpatch.Add(path, want)}
	}
	var patch jsonpatch.Patch
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, found := have[key]; !found || value != want[key] {
			patch = append(patch, jsonpatch.Add(path+jsonpatch.Pointer(key), want[key]))
		}
	}
	return patch
}
