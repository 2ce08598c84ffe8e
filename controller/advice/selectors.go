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

// selects reports whether a member selects Pods.
func (m *Member) selects(p corev1.PodTemplateSpec) bool {
	_, selector := m.selector()
	for key, value := range selector {
		if found, ok := p.Labels[key]; !ok || found != value {
			return false
		}
	}
	return len(selector) > 0
}

// ofSelector warns of a Service that leads to the Pods of other devices or of several
// templates, of a workload that selects the Pods of another, which Kubernetes does not
// support, and of a Service in an old field that selects none, if all Pods are known.
func (m *Member) ofSelector(members []Member) templating.Diagnostics {
	var first *Member
	var others, hints []string
	known, unlabeled := true, false
	for i := range members {
		other := &members[i]
		custom := strings.Contains(other.kind.Group, ".") && other.kind.Group != "networking.k8s.io"
		known = known && (len(other.pods) > 0 || !custom) // its operator may create any
		unlabeled = unlabeled || len(other.pods) > 0
		if other == m || other.get("metadata", "namespace") != m.get("metadata", "namespace") || !slices.ContainsFunc(other.pods, m.selects) {
			continue
		}
		first = cmp.Or(first, other)
		if whose, hint := m.confuses(other, first); whose != "" && !slices.Contains(others, whose) {
			others, hints = append(others, whose), append(hints, hint)
		}
	}
	place, selector := m.selector()
	cause := "it selects not only its own Pods, but also those of %[2]s, and Kubernetes requires selectors that do not overlap"
	hint := slices.Max(append(hints, "")) + "; an object that exists needs another name, too, because its selector is immutable"
	switch {
	case m.source == nil && first == nil && len(selector) == 1 && known && unlabeled:
		label, _, _ := strings.Cut(m.label(), ":") // the only one, which Akri has added
		return templating.Diagnostics{m.at(nil, "the Service selects the label "+label+", which no Pod of the templates has",
			fmt.Sprintf(`add the line "%s" to the labels of Pods in %s`, m.label(), m.Origin.Level))}
	case len(hints) == 0:
		return nil
	case m.isService():
		cause, hint = "it selects not only the Pods of %s, but also those of %s", slices.Max(hints)
	}
	return templating.Diagnostics{m.at(place, fmt.Sprintf(cause, first.name(), strings.Join(others, " and of ")), hint)}
}

// label is the label that Akri sets on the Pods of a device, or of all.
func (m *Member) label() string {
	return []string{v0.LabelInstance + ": '{{ INSTANCE_NAME }}'", v0.LabelConfiguration + ": '{{ CONFIGURATION_NAME }}'"}[m.Origin.Level]
}

// confuses returns whose Pods a member should not select, and the remedy: the last by alphabet
// includes the others. A Service for all devices selects those of all devices on purpose, and one
// with a label of the author's own, or without an address, may select those of several
// templates. Who selects no Pods loses none to a workload.
func (m *Member) confuses(other, first *Member) (whose, hint string) {
	own := func(key string) bool { return !strings.HasPrefix(key, v0.Domain+"/") }
	place, selector := m.selector()
	otherPlace, _ := other.selector()
	device, its := m.values.Instance.Name, other.values.Instance.Name
	switch whose = other.name(); {
	case !other.labeled() || !m.isService() && otherPlace == nil:
		return "", ""
	case device != "" && its != "" && device != its:
		if templating.ReadsDevice(place.Lookup(m.source)) {
			return "", "" // samples may have the same properties, and devices not
		}
		return "other devices", `add "` + m.label() + `" to it`
	case m.isService() && (other.name() == first.name() || m.get("spec", "clusterIP") == corev1.ClusterIPNone ||
		slices.ContainsFunc(slices.Collect(maps.Keys(selector)), own)), other.name() == m.name():
		return "", ""
	}
	return whose, `select "{` + m.label() + `, component: NAME}", and add "component: NAME" to the labels of the Pods that it should select`
}
