package advice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// podSpec is the specification of Pods in an object.
type podSpec struct {
	path string
	corev1.PodSpec
}

// podSpecsIn returns those in a value, in order of their paths.
func podSpecsIn(value any, path string) (found []podSpec) {
	switch value := value.(type) {
	case map[string]any:
		spec := podSpec{path: path}
		_, isPod := value["containers"].([]any)
		if isPod && runtime.DefaultUnstructuredConverter.FromUnstructured(value, &spec.PodSpec) == nil {
			return []podSpec{spec}
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, podSpecsIn(value[key], strings.TrimPrefix(path+"."+key, "."))...)
		}
	case []any:
		for i, element := range value {
			found = append(found, podSpecsIn(element, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return found
}

// ofPods warns of init containers that request devices and are not sidecars: the kubelet's
// list of devices does not show them. A Pod with such a container is killed if its kubelet
// restarts and the agent responds a second too late (kubelet 1.37), and its slots are freed
// only when the whole Pod has terminated.
//
// It also warns of Pods, of Kubernetes' own kinds of workloads, that use nothing of the
// devices: no container requests one, and no expression reads a property. Authors who do not
// know of the request wonder why their programs get no variables.
func ofPods(source map[string]any, kind schema.GroupKind, content map[string]any) (mistakes []finding.Mistake) {
	own := slices.Contains([]string{"", "apps", "batch"}, kind.Group)
	for _, pod := range podSpecsIn(content, "") {
		for i := range pod.InitContainers {
			if init := &pod.InitContainers[i]; len(DevicesOf(init)) > 0 && !IsSidecar(init) {
				mistakes = append(mistakes, finding.Mistake{
					Path: fmt.Sprintf("%s.initContainers[%d]", pod.path, i),
					Cause: "an init container that requests a device keeps it until the Pod ends, " +
						"and the Pod may be killed when the kubelet restarts",
					Hint: "request the device in the containers only, or make it a sidecar with restartPolicy: Always",
				})
			}
		}
		if own && len(pod.Containers) > 0 && len(Requested(&pod.PodSpec)) == 0 && !templating.ReadsDevice(source) {
			name := "{{ RESOURCE_NAME }}"
			if source == nil { // Akri's old fields have no expressions
				name = "{{PLACEHOLDER}}"
			}
			mistakes = append(mistakes, finding.Mistake{
				Cause: "no container requests a device, so none gets the device's variables, files and mounts, or a slot",
				Hint:  `if one uses the device, add two lines to it, "resources:" and "  limits: {'` + name + `': '1'}"`,
			})
		}
	}
	return mistakes
}
