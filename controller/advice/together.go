package advice

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// EndOldPodFirst is the remedy for a Deployment whose update waits for ever. It can be applied
// to one that exists, unlike type: Recreate, which the API server refuses because the existing
// object has the defaults of rollingUpdate.
const EndOldPodFirst = `stop the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
	`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`

// Member is an object among those of one Configuration that [Together] compares.
type Member struct {
	templating.Object
	source map[string]any // nil for one of Akri's old fields
	values templating.Values
	kind   schema.GroupKind
	pods   []corev1.PodTemplateSpec
}

// Together returns the warnings about objects of one Configuration that get in each other's
// way: those of two devices at least, so that what is equal for all devices is seen.
func Together(members []Member) templating.Diagnostics {
	const most = 500 // with more devices, they are alike
	if len(members) > most {
		members = slices.Concat(members[:most/2], members[len(members)-most/2:])
	}
	warnings := ofSlots(members)
	for i := range members {
		warnings = append(warnings, members[i].located(members[i].ofSelector(members))...)
	}
	return warnings
}

func (m *Member) get(keys ...string) any { return templating.Keys(keys...).Lookup(m.Content) }

func (m *Member) name() string { return m.Origin.Template().String() }

// located sets the template of warnings.
func (m *Member) located(warnings templating.Diagnostics) templating.Diagnostics {
	for i := range warnings {
		warnings[i].Origin = m.Origin.Template()
	}
	return warnings
}

// decided reports whether a template has a directive, whatever its value.
func (m *Member) decided(directive string) bool {
	_, found := templating.Keys("metadata", "annotations", directive).In(m.source)
	return found
}

// labeled reports whether Akri adds its labels to the Pods.
func (m *Member) labeled() bool {
	_, labeled := templating.PodTemplate(m.kind)
	return labeled
}

// count returns how many Pods run until the object is deleted: Jobs end, a DaemonSet has one
// Pod at least, and a wrong type is none.
func (m *Member) count() int64 {
	count, err := strconv.ParseInt(fmt.Sprint(cmp.Or(m.get("spec", "replicas"), any(1))), 10, 64)
	if err != nil || !m.labeled() || len(m.pods) != 1 ||
		cmp.Or(m.pods[0].Spec.RestartPolicy, corev1.RestartPolicyAlways) != corev1.RestartPolicyAlways {
		return 0
	}
	return count
}

// surges reports whether an update of a Deployment ends no old Pod before a new one is ready.
func (m *Member) surges() bool {
	var update appsv1.DeploymentStrategy
	written, _ := m.get("spec", "strategy").(map[string]any)
	wrong := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &update)
	rolling := cmp.Or(update.RollingUpdate, &appsv1.RollingUpdateDeployment{})
	standard := intstr.FromString("25%")
	more, invalid := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxSurge, standard), int(m.count()), true)
	fewer, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxUnavailable, standard), int(m.count()), false)
	return m.kind.Kind == "Deployment" && errors.Join(wrong, invalid, err) == nil &&
		update.Type != appsv1.RecreateDeploymentStrategyType && more > 0 && fewer == 0
}

// slots returns how many slots each Pod has, and how many there are, by resource, as far as it
// is known: of a device, and of all devices if the author asks for Pods by their number.
func (m *Member) slots() (each, all map[string]int64) {
	if m.count() == 0 {
		return nil, nil
	}
	replicas, _ := templating.Keys("spec", "replicas").Lookup(m.source).(string)
	each, all = Requested(&m.pods[0].Spec), map[string]int64{}
	for _, device := range append([]templating.Instance{m.values.Instance}, m.values.Instances...) {
		all[v0.ResourceName(device.Name)] = m.values.Capacity
	}
	if strings.Contains(replicas, "INSTANCES") {
		all[v0.ResourceName(m.values.Configuration)] = m.values.Capacity * int64(len(m.values.Instances)) // as wrong with more devices
	}
	maps.DeleteFunc(each, func(resource string, _ int64) bool { return all[resource] == 0 })
	return each, all
}

// ofSlots warns of Pods that wait for a slot for ever: those of several templates that together
// want more slots than there are, and the new Pod of an update that starts it before an old one
// ends. A template alone may have more Pods than slots: they stand by.
func ofSlots(members []Member) (warnings templating.Diagnostics) {
	first, last, total := map[string]*Member{}, map[string]*Member{}, map[string]int64{}
	for i := range members {
		m := &members[i]
		slots, _ := m.slots()
		for resource, each := range slots {
			first[resource], last[resource] = cmp.Or(first[resource], m), m
			total[resource] += each * m.count()
		}
	}
	for i := range members {
		m := &members[i]
		slots, all := m.slots()
		for _, resource := range slices.Sorted(maps.Keys(slots)) {
			each, all, total := slots[resource], all[resource], total[resource]
			var found templating.Diagnostics
			switch several := first[resource].name() != last[resource].name(); {
			case total > all && several && m == last[resource]:
				found = append(found, warning(nil, fmt.Sprintf("the Pods of this template and of %s request more slots of a device than "+
					"there are, so some wait forever (slots requested: %d, in total: %d)", first[resource].name(), total, all),
					fmt.Sprintf("set spec.capacity to %d or more, or request the device in fewer Pods", total+each)))
			case (total <= all || !several) && m.surges() && total+each > all:
				found = append(found, warning(templating.Keys("spec", "strategy"), fmt.Sprintf("an update waits forever, because it starts a new "+
					"Pod before it stops an old one, and there is no slot for the new one "+
					"(Pods: %d, slots per Pod: %d, slots of other Pods: %d, in total: %d)",
					m.count(), each, total-each*m.count(), all), EndOldPodFirst))
			}
			warnings = append(warnings, m.located(found)...)
		}
	}
	return warnings
}

// selector returns the labels that the object selects Pods by, and their place; nil if none.
func (m *Member) selector() (place templating.Path, labels map[string]any) {
	switch {
	case m.isService() && m.get("spec", "type") != string(corev1.ServiceTypeExternalName):
		place = templating.Keys("spec", "selector")
	case m.kind.Group == "apps" && m.get("spec", "selector", "matchExpressions") == nil:
		place = templating.Keys("spec", "selector", "matchLabels")
	default:
		return nil, nil
	}
	labels, _ = place.Lookup(m.Content).(map[string]any)
	return place, labels
}

func (m *Member) isService() bool { return m.kind == schema.GroupKind{Kind: "Service"} }

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
//
// A Service for all devices selects those of all devices on purpose, and one with a label of the
// author's own, or without an address, may select those of several templates. Who selects no
// Pods loses none to a workload.
func (m *Member) ofSelector(members []Member) templating.Diagnostics {
	place, selector := m.selector()
	label := []string{v0.LabelInstance + ": '{{ INSTANCE_NAME }}'", v0.LabelConfiguration + ": '{{ CONFIGURATION_NAME }}'"}[m.Origin.Level]
	own := func(key string) bool { return !strings.HasPrefix(key, v0.Domain+"/") }
	several := m.isService() && (m.get("spec", "clusterIP") == corev1.ClusterIPNone ||
		slices.ContainsFunc(slices.Collect(maps.Keys(selector)), own))
	var first *Member
	var others []string
	hint := ""
	known, pods := true, false
	for i := range members {
		other := &members[i]
		custom := strings.Contains(other.kind.Group, ".") && other.kind.Group != "networking.k8s.io"
		known = known && (len(other.pods) > 0 || !custom) // its operator may create any
		pods = pods || len(other.pods) > 0
		if other == m || other.get("metadata", "namespace") != m.get("metadata", "namespace") || !slices.ContainsFunc(other.pods, m.selects) {
			continue
		}
		first = cmp.Or(first, other)
		whose := other.name()
		otherPlace, _ := other.selector()
		switch device, its := m.values.Instance.Name, other.values.Instance.Name; {
		case !other.labeled() || !m.isService() && otherPlace == nil:
			continue
		case device != "" && its != "" && device != its:
			if templating.ReadsDevice(place.Lookup(m.source)) {
				continue // samples may have the same properties, and devices not
			}
			whose, hint = "other devices", cmp.Or(hint, `add "`+label+`" to it`)
		case several, whose == m.name(), m.isService() && whose == first.name():
			continue
		default:
			hint = `select "{` + label + `, component: NAME}", and add "component: NAME" to the labels of the Pods that it should select`
		}
		if !slices.Contains(others, whose) {
			others = append(others, whose)
		}
	}
	switch {
	case m.source == nil && first == nil && len(selector) == 1 && known && pods:
		key, _, _ := strings.Cut(label, ":") // the only one, which Akri has added
		return templating.Diagnostics{warning(nil, "the Service selects the label "+key+", which no Pod of the templates has",
			fmt.Sprintf(`add the line "%s" to the labels of Pods in %s`, label, m.Origin.Level))}
	case len(others) == 0:
		return nil
	case m.isService():
		return templating.Diagnostics{warning(place,
			"it selects not only the Pods of "+first.name()+", but also those of "+strings.Join(others, " and of "), hint)}
	}
	return templating.Diagnostics{warning(place, "it selects not only its own Pods, but also those of "+strings.Join(others, " and of ")+
		", and Kubernetes requires selectors that do not overlap",
		hint+"; an object that exists needs another name, too, because its selector is immutable")}
}
