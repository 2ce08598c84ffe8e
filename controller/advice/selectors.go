package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// labeled reports whether Akri adds its labels to the Pods.
func (m *Member) labeled() bool {
	_, labeled := templating.PodTemplate(m.kind)
	return labeled
}

// selects reports whether a member selects Pods. A Service leads to no Pod that lacks all of its
// named ports.
func (m *Member) selects(p pods) bool {
	for key, value := range m.selector {
		if found, ok := p.Labels[key]; !ok || found != value {
			return false
		}
	}
	leads := func(port corev1.ServicePort) bool {
		return port.TargetPort.StrVal == "" || slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(own corev1.ContainerPort) bool { return own.Name == port.TargetPort.StrVal })
		})
	}
	return len(m.selector) > 0 && (len(m.Spec.Ports) == 0 || slices.ContainsFunc(m.Spec.Ports, leads))
}

// ofSelector warns of a Service that leads to the Pods of other devices or of several
// templates, of a workload that selects the Pods of another, which Kubernetes does not
// support, and of a Service in an old field that selects no Pod.
func (m *Member) ofSelector(members []Member) templating.Diagnostics {
	var first *Member
	var others, pairs, labels []string
	for i := range members {
		other := &members[i]
		if other == m || other.Metadata.Namespace != m.Metadata.Namespace || !slices.ContainsFunc(other.pods, m.selects) {
			continue
		}
		first = cmp.Or(first, other)
		whose, pair := m.confuses(other, first)
		if whose == "" || slices.Contains(others, whose) {
			continue
		}
		others, pairs = append(others, whose), append(pairs, pair)
		if !strings.HasPrefix(pair, v0.Domain) { // Akri sets the other labels
			labels = append(labels, pair)
		}
	}
	switch {
	case len(others) > 0:
	case m.isService() && m.source == nil && len(m.selector) > 0 && first == nil:
		return m.selectsNothing(members)
	default:
		return nil
	}
	hint := fmt.Sprintf(`add "%s" to it`, strings.Join(slices.Compact(pairs), ", "))
	if _, isText := m.selectorPath().Lookup(m.source).(string); isText {
		base := v0.LabelInstance + ": '{{ INSTANCE_NAME }}'"
		if m.Origin.Level == templating.ConfigurationLevel {
			base = v0.LabelConfiguration + ": '{{ CONFIGURATION_NAME }}'"
		}
		hint = fmt.Sprintf(`write "{%s, %s}" instead`, base, strings.Join(slices.Compact(pairs), ", "))
	}
	if len(labels) > 0 {
		hint += fmt.Sprintf(`, and "%s" to the labels of the Pods that are meant`, strings.Join(slices.Compact(labels), ", "))
	}
	cause := "requests reach not only the Pods of " + first.name() + ", but also those of " + strings.Join(others, " and of ")
	if !m.isService() {
		cause = "it selects not only its own Pods, but also those of " + strings.Join(others, " and of ") +
			", and Kubernetes requires selectors that do not overlap"
		hint += "; an object that exists needs another name, too, because its selector is immutable"
	}
	return templating.Diagnostics{m.at(m.selectorPath(), cause, hint)}
}

// confuses returns whose Pods a member should not select, and the label that tells them apart;
// first is the first that it selects. A Service for all devices selects those of all devices
// on purpose, and one with a label of the author's own, or without an address, may select those
// of several templates. Who selects no Pods loses none to a workload.
func (m *Member) confuses(other, first *Member) (whose, pair string) {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	own := func(key string) bool { return !strings.HasPrefix(key, v0.Domain+"/") }
	switch {
	case !other.labeled() || !m.isService() && other.selector == nil:
	case differ(m.device, other.device):
		switch device := "{{ INSTANCE_NAME }}"; {
		case templating.ReadsDevice(m.selectorPath().Lookup(m.source)): // samples may have the same properties, and devices not
		case other.Origin.Level > m.Origin.Level: // two templates would have to be mended
		case other.Origin.Level == templating.ConfigurationLevel:
			return "other devices", "instance: '{{ INSTANCE.name }}'"
		case m.Origin.Level == templating.ConfigurationLevel:
			device = "{{ INSTANCE.name }}"
			fallthrough
		default:
			return "other devices", v0.LabelInstance + ": '" + device + "'"
		}
	case differ(m.node, other.node):
		return "other nodes", "node: '{{ labelValue NODE }}'"
	case m.isService() && (m.Spec.ClusterIP == corev1.ClusterIPNone || slices.ContainsFunc(slices.Collect(maps.Keys(m.selector)), own)):
	case m.isService() && other.name() != first.name(), !m.isService() && other.name() != m.name():
		return other.name(), "component: NAME"
	}
	return "", ""
}

// selectorPath returns the place of the labels that a member selects.
func (m *Member) selectorPath() templating.Path {
	if m.isService() {
		return templating.Keys("spec", "selector")
	}
	return templating.Keys("spec", "selector", "matchLabels")
}

// selectsNothing warns of a Service in an old field, whose author relies on labels that Akri
// sets, if all Pods that the templates create are known. Without any Pods, the author creates
// them.
func (m *Member) selectsNothing(members []Member) templating.Diagnostics {
	label, value, hint := v0.LabelInstance, "INSTANCE_NAME",
		"use configurationServiceSpec instead, or move the Pods to instanceBrokerResources"
	if m.Origin.Level == templating.ConfigurationLevel {
		label, value = v0.LabelConfiguration, "CONFIGURATION_NAME"
	}
	found, place := false, ""
	for i := range members {
		other := &members[i]
		reachable := other.Origin.Level == templating.InstanceLevel || label == v0.LabelConfiguration
		custom := strings.Contains(other.kind.Group, ".") && other.kind.Group != "networking.k8s.io"
		if reachable && custom && len(other.pods) == 0 { // nobody knows what its operator creates
			return nil
		}
		for _, p := range other.pods {
			if p.Labels[label] != "" {
				return nil // the author adds more to the selector
			}
			if found = true; reachable && place == "" {
				place = append(p.path, templating.Keys("metadata", "labels")...).Below("spec." + other.name())
				hint = fmt.Sprintf(`add the line "%s: '{{ %s }}'" to %s`, label, value, place)
			}
		}
	}
	if !found {
		return nil
	}
	return templating.Diagnostics{m.at(nil, "the Service selects the label "+label+", which no Pod of the templates has", hint)}
}
