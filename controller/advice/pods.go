package advice

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// PodTemplate is what Pods are made from: a Pod, or a part of an object.
type PodTemplate struct {
	Path   templating.Path
	Object map[string]any
}

// PodTemplatesIn returns those in a value, in order of their paths, which begin with a path.
func PodTemplatesIn(value any, path templating.Path) (found []PodTemplate) {
	switch value := value.(type) {
	case map[string]any:
		spec, _ := value["spec"].(map[string]any)
		if _, isPod := spec["containers"]; isPod {
			return []PodTemplate{{path, value}}
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, PodTemplatesIn(value[key], append(slices.Clip(path), templating.Key(key)))...)
		}
	case []any:
		for i, element := range value {
			found = append(found, PodTemplatesIn(element, append(slices.Clip(path), templating.Index(i)))...)
		}
	}
	return found
}

// InitContainers returns the warnings about the init containers of Pods that request devices
// and are not sidecars: the kubelet's list of devices does not show them. A Pod with such a
// container is killed if its kubelet restarts and the agent responds a second too late
// (kubelet 1.37), and its slots are freed only when the whole Pod has terminated.
func InitContainers(pod *corev1.PodSpec, path templating.Path) (warnings templating.Diagnostics) {
	for i := range pod.InitContainers {
		container := &pod.InitContainers[i]
		if isSidecar(container) || len(DevicesOf(container)) == 0 {
			continue
		}
		warnings = append(warnings, warning(append(slices.Clip(path), templating.Key("initContainers"), templating.Index(i)),
			fmt.Sprintf("the init container %s requests a device, which the Pod has until it terminates, "+
				"and the Pod may be killed when the kubelet restarts", container.Name),
			"request the device in the containers only, or make it a sidecar with restartPolicy: Always"))
	}
	return warnings
}

// ofPods reads the Pods of an object. It warns of init containers with devices, of Pods of a
// device that may get another one, and of Pods, of Kubernetes' own kinds of workloads, that use
// nothing of the devices: no container requests one, and no expression reads a property.
// Authors who do not know of the request wonder why their programs get no variables.
func (m *Member) ofPods() (warnings templating.Diagnostics) {
	own := slices.Contains([]string{"", "apps", "batch"}, m.kind.Group) && !templating.ReadsDevice(m.source)
	name := "{{ RESOURCE_NAME }}"
	if m.source == nil { // Akri's old fields have no expressions
		name = "{{PLACEHOLDER}}"
	}
	for _, template := range PodTemplatesIn(m.Content, nil) {
		var pod corev1.PodTemplateSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(template.Object, &pod) != nil {
			continue // which others report
		}
		if len(m.pods) < 64 && (len(template.Path) > 0 || m.labeled()) { // not a custom kind with containers
			m.pods = append(m.pods, pod)
		}
		spec := append(slices.Clip(template.Path), templating.Key("spec"))
		warnings = append(warnings, InitContainers(&pod.Spec, spec)...)
		if own && len(pod.Spec.Containers) > 0 && len(Requested(&pod.Spec)) == 0 {
			warnings = append(warnings, warning(nil,
				"no container requests a device, so none gets the device's variables, files and mounts, or a slot",
				`if one uses the device, add two lines to it, "resources:" and "  limits: {'`+name+`': '1'}"`))
		}
		for i := range pod.Spec.Containers {
			anyDevice := DevicesOf(&pod.Spec.Containers[i])[v0.ResourceName(m.values.Configuration)]
			if anyDevice > 0 && m.Origin.Level == templating.InstanceLevel {
				warnings = append(warnings, warning(
					append(slices.Clip(spec), templating.Key("containers"), templating.Index(i), templating.Key("resources")),
					"it requests any device of the Configuration, perhaps not that of its Instance", "write "+name))
			}
		}
	}
	return warnings
}
