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

// PodTemplate is what Pods are made from: a Pod, or a part of an object.
type PodTemplate struct {
	Path   string
	Object map[string]any
}

// PodTemplatesIn returns those in a value, in order of their paths, which begin with path.
func PodTemplatesIn(value any, path string) (found []PodTemplate) {
	switch value := value.(type) {
	case map[string]any:
		spec, _ := value["spec"].(map[string]any)
		if _, isPod := spec["containers"]; isPod {
			return []PodTemplate{{path, value}}
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, PodTemplatesIn(value[key], strings.TrimPrefix(path+"."+key, "."))...)
		}
	case []any:
		for i, element := range value {
			found = append(found, PodTemplatesIn(element, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return found
}

// InitContainers returns the warnings about the init containers of Pods that request devices
// and are not sidecars: the kubelet's list of devices does not show them. A Pod with such a
// container is killed if its kubelet restarts and the agent responds a second too late
// (kubelet 1.37), and its slots are freed only when the whole Pod has terminated.
func InitContainers(pod *corev1.PodSpec, path string) (mistakes []finding.Mistake) {
	for i := range pod.InitContainers {
		container := &pod.InitContainers[i]
		if isSidecar(container) || len(DevicesOf(container)) == 0 {
			continue
		}
		mistakes = append(mistakes, finding.Mistake{
			Path: fmt.Sprintf("%s.initContainers[%d]", path, i),
			Cause: fmt.Sprintf("the init container %s requests a device, which the Pod has until it ends, "+
				"and the Pod may be killed when the kubelet restarts", container.Name),
			Hint: "request the device in the containers only, or make it a sidecar with restartPolicy: Always",
		})
	}
	return mistakes
}

// ofPods warns of init containers with devices and of Pods, of Kubernetes' own kinds of
// workloads, that use nothing of the devices: no container requests one, and no expression
// reads a property. Authors who do not know of the request wonder why their programs get no
// variables.
func ofPods(source map[string]any, kind schema.GroupKind, content map[string]any) (mistakes []finding.Mistake) {
	own := slices.Contains([]string{"", "apps", "batch"}, kind.Group) && !templating.ReadsDevice(source)
	for _, template := range PodTemplatesIn(content, "") {
		var pod corev1.PodTemplateSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(template.Object, &pod) != nil {
			continue // which others report
		}
		mistakes = append(mistakes, InitContainers(&pod.Spec, strings.TrimPrefix(template.Path+".spec", "."))...)
		if own && len(pod.Spec.Containers) > 0 && len(Requested(&pod.Spec)) == 0 {
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
