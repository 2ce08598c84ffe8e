package webhook

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating/convert"
)

// checkDevices warns of Pods, of Kubernetes' own kinds of workloads at both levels, that use
// nothing of the devices: no container requests one, and no expression reads a property.
// Authors who do not know of the request wonder why their programs get no variables.
func checkDevices(configuration *v0.Configuration, candidates []*candidate) []Finding {
	var findings []Finding
	for _, tmpl := range candidates {
		switch tmpl.kind.Group {
		case "", "apps", "batch":
		default:
			continue
		}
		var source any = tmpl.source
		name, legacy := "{{ RESOURCE_NAME }}", tmpl.source == nil
		if legacy { // Akri's legacy fields have no expressions
			source, name = legacySpec(configuration, tmpl.place), "{{PLACEHOLDER}}"
		}
		if !hasContainers(source) || hasRequest(source) || !legacy && readsProperties(source) {
			continue
		}
		findings = append(findings, Finding{Warn, finding.Mistake{
			Path:  tmpl.place,
			Cause: "no container requests a device, so none gets the device's variables, files and mounts, or a slot",
			Hint:  `if one uses the device, add two lines to it, "resources:" and "  limits: {'` + name + `': '1'}"`,
		}})
	}
	return findings
}

// checkDoubts warns of what in the old fields works other than it looks.
func checkDoubts(configuration *v0.Configuration) []Finding {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&configuration.Spec)
	if err != nil {
		return nil // the API server has decoded it
	}
	var findings []Finding
	for _, d := range convert.Doubts(spec, configuration.Name) {
		findings = append(findings, Finding{Warn, d.In("spec").Mistake})
	}
	return findings
}

// hasContainers reports whether a value has a Pod's list of containers, without an
// expression in place of one.
func hasContainers(value any) bool {
	object, _ := value.(map[string]any)
	for key, child := range object {
		list, isList := child.([]any)
		if key != "containers" || !isList || len(list) == 0 {
			if hasContainers(child) {
				return true
			}
			continue
		}
		for _, container := range list {
			fields, isObject := container.(map[string]any)
			if _, isText := fields["resources"].(string); !isObject || isText {
				return false
			}
		}
		return true
	}
	return false
}

// hasRequest reports whether a value has a container that requests one of Akri's resources.
func hasRequest(value any) bool {
	switch node := value.(type) {
	case map[string]any:
		if resources, ok := node["resources"].(map[string]any); ok && requests(resources) {
			return true
		}
		for _, child := range node {
			if hasRequest(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(node, hasRequest)
	}
	return false
}

// requests reports whether the resources of a container have one of Akri's. Its name may be
// an expression.
func requests(resources map[string]any) bool {
	for _, field := range []string{"requests", "limits"} {
		if _, isText := resources[field].(string); isText {
			return true
		}
		amounts, _ := resources[field].(map[string]any)
		for name := range amounts {
			if strings.HasPrefix(name, v0.Domain+"/") || strings.Contains(name, "RESOURCE_NAME") || strings.Contains(name, "PLACEHOLDER") {
				return true
			}
		}
	}
	return false
}
