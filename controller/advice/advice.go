package advice

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// Of returns the warnings about an object that was rendered with some values from a
// template as its author wrote it; nil for one of Akri's old fields. What [Together] needs to
// know of the object comes with them.
func Of(source map[string]any, object templating.Object, values templating.Values) (Member, templating.Diagnostics) {
	apiVersion, _ := object.Content["apiVersion"].(string)
	name, _ := object.Content["kind"].(string)
	m := Member{Object: object, source: source, values: values, kind: schema.FromAPIVersionAndKind(apiVersion, name).GroupKind()}
	warnings := m.ofPods()
	if source == nil {
		warnings = append(warnings, m.ofTexts()...)
	}
	const once, policy = v0.Domain + "/once", v0.Domain + "/deletion-policy"
	switch m.kind {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if m.get("spec", "ttlSecondsAfterFinished") != nil && !object.Directives.Once && !m.decided(once) {
			warnings = append(warnings, warning(templating.Keys("spec", "ttlSecondsAfterFinished"),
				"the Job is deleted when it has finished, and then created again, so it runs again and again",
				"annotate it "+once+`: "true" to run it once per device, or "false" if that is intended`))
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		if !m.decided(policy) {
			when := []string{"its device disappears", "the last device disappears, even for a moment"}[object.Origin.Level]
			warnings = append(warnings, warning(nil, "the PersistentVolumeClaim is deleted when "+when+", and its data with it",
				"annotate it "+policy+": orphan to keep it, or delete if that is intended"))
		}
	}
	return m, m.located(warnings)
}

func warning(field templating.Path, cause, hint string) templating.Diagnostic {
	return templating.Diagnostic{Field: field, Cause: errors.New(cause), Hint: hint}
}

// walk calls visit with a value, with all below it unless visit returns false, and with the keys
// of maps as if they were values.
func walk(value any, path templating.Path, visit func(value any, path templating.Path) bool) {
	if !visit(value, path) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := append(slices.Clip(path), templating.Key(key))
			visit(key, below)
			walk(value[key], below, visit)
		}
	case []any:
		for i, element := range value {
			walk(element, append(slices.Clip(path), templating.Index(i)), visit)
		}
	}
}

// ofTexts warns of what the author of an old field may take for an expression: it is replaced
// neither here nor in Akri.
func (m *Member) ofTexts() (warnings templating.Diagnostics) {
	walk(m.Content, nil, func(value any, path templating.Path) bool {
		if text, _ := value.(string); strings.Contains(text, "{{") || text == "PLACEHOLDER" {
			warnings = append(warnings, warning(path,
				"this text is not replaced: in Akri's old fields, only {{PLACEHOLDER}} is replaced, as a name in requests and limits",
				"write an expression in "+m.Origin.Level.String()+", to which kubectl akri convert moves the field"))
		}
		return true
	})
	return warnings
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
	walk(m.Content, nil, func(value any, path templating.Path) bool {
		var pod corev1.PodTemplateSpec
		if template, _ := value.(map[string]any); templating.Keys("spec", "containers").Lookup(template) == nil {
			return true
		} else if runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod) != nil {
			return false // which others report
		}
		if len(m.pods) < 64 && (len(path) > 0 || m.labeled()) { // not a custom kind with containers
			m.pods = append(m.pods, pod)
		}
		spec := append(slices.Clip(path), templating.Key("spec"))
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
		return false
	})
	return warnings
}
