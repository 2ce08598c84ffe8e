package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// checkServices warns of Services of Akri's legacy fields that select no Pod of the
// templates, if all Pods that the templates create are known. Those of brokerSpec, and
// of Kubernetes' own workloads at the Service's level, have the labels. Without any
// Pods, the author creates them.
func checkServices(configuration *v0.Configuration, candidates []*candidate) []Finding {
	if slices.ContainsFunc(candidates, func(c *candidate) bool { return strings.HasPrefix(c.place, "spec.brokerSpec.") }) {
		return nil
	}
	var findings []Finding
	for _, field := range []struct {
		name  string
		spec  *runtime.RawExtension
		label string
		value string
		// hint is the remedy if no template can have the label.
		hint string
	}{
		{"instanceServiceSpec", configuration.Spec.InstanceServiceSpec, v0.LabelInstance, "{{ INSTANCE_NAME }}",
			"use configurationServiceSpec instead, or move the Pods to instanceBrokerResources"},
		{"configurationServiceSpec", configuration.Spec.ConfigurationServiceSpec, v0.LabelConfiguration, "{{ CONFIGURATION_NAME }}", ""},
	} {
		if field.spec == nil || !selectsPods(field.spec.Raw) {
			continue
		}
		pods, unlabeled := podsWithout(candidates, field.label)
		if !pods {
			continue
		}
		hint := field.hint
		if unlabeled != "" {
			hint = fmt.Sprintf(`add the line "%s: '%s'" to %s.metadata.labels`, field.label, field.value, unlabeled)
		}
		findings = append(findings, Finding{Warn, finding.Mistake{
			Path:  "spec." + field.name,
			Cause: "the Service selects the label " + field.label + ", which no Pod of the templates has", Hint: hint,
		}})
	}
	return findings
}

// selectsPods reports whether a Service of this spec has endpoints.
func selectsPods(spec []byte) bool {
	var service struct{ Type string }
	return json.Unmarshal(spec, &service) == nil && service.Type != "ExternalName"
}

// podsWithout reports whether templates create Pods and none of these Pods has a label. It
// returns the place of the first Pod template to which it could be added.
func podsWithout(candidates []*candidate, label string) (pods bool, unlabeled string) {
	for _, tmpl := range candidates {
		unreachable := label == v0.LabelInstance && tmpl.level == templating.ConfigurationLevel
		if _, labeled := templating.PodTemplate(tmpl.kind.GroupKind()); labeled {
			if !unreachable {
				return false, ""
			}
			pods = true
			continue
		}
		found := advice.PodTemplatesIn(tmpl.source, nil)
		found = slices.DeleteFunc(found, func(t advice.PodTemplate) bool { return len(t.Path) == 0 }) // an object that is no Pod
		if len(found) == 0 && !unreachable && !builtIn(tmpl.kind.Group) {
			return false, "" // what its operator creates is not known
		}
		for _, pod := range found {
			if mayHave(pod.Object, label, unreachable) {
				return false, ""
			}
			pods = true
			if unlabeled == "" && !unreachable {
				unlabeled = pod.Path.Below(tmpl.place)
			}
		}
	}
	return pods, unlabeled
}

// builtIn reports whether a group is one of Kubernetes' own, whose kinds create no
// other Pods than those that are known.
func builtIn(group string) bool { return !strings.Contains(group, ".") || group == "networking.k8s.io" }

// mayHave reports whether Pods of a template may have a label: it is written there, or in place of
// something is an expression. LABEL_SELECTOR has no label of one Instance at
// configuration level.
func mayHave(pod map[string]any, label string, unreachable bool) bool {
	labels := pod["metadata"]
	if metadata, ok := labels.(map[string]any); ok {
		labels = metadata["labels"]
	}
	switch labels := labels.(type) {
	case string:
		name, _ := expression(labels)
		return !unreachable || name != "LABEL_SELECTOR"
	case map[string]any:
		for key := range labels {
			if key == label || strings.Contains(key, "{{") {
				return true
			}
		}
	}
	return false
}
