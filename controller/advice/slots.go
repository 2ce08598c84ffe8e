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
	"k8s.io/apimachinery/pkg/util/intstr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// EndOldPodFirst is the remedy for a Deployment whose update waits for ever. It can be applied
// to one that exists, unlike type: Recreate, which the API server refuses because the existing
// object has the defaults of rollingUpdate.
const EndOldPodFirst = `stop the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
	`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`

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
			switch {
			case total > all && first[resource].name() != last[resource].name():
				if m == last[resource] {
					warnings = append(warnings, m.at(nil, fmt.Sprintf("the Pods of this template and of %s request more slots of a device than "+
						"there are, so some wait forever (slots wanted: %d, in all: %d)", first[resource].name(), total, all),
						fmt.Sprintf("set spec.capacity to %d or more, or request the device in fewer Pods", total+each)))
				}
			case m.surges() && total+each > all:
				warnings = append(warnings, m.at(templating.Keys("spec", "strategy"), fmt.Sprintf("an update waits forever, because it starts a new "+
					"Pod before it stops an old one, and there is no slot for the new one (Pods: %d, slots for each: %d, of others: %d, in all: %d)",
					m.count(), each, total-each*m.count(), all), EndOldPodFirst))
			}
		}
	}
	return warnings
}
