package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// EndOldPodFirst is the remedy for a Deployment whose update waits for ever. It can be applied
// to one that exists, unlike type: Recreate, which the API server refuses because the existing
// object has the defaults of rollingUpdate.
const EndOldPodFirst = `end the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
	`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`

// surges reports whether an update ends no old Pod before a new one is ready.
func (m *Member) surges() bool {
	update, surge, unavailable := &m.Spec.Strategy, intstr.FromString("25%"), intstr.FromString("25%")
	if m.kind.Kind == "DaemonSet" {
		update, surge, unavailable = &m.Spec.Update, intstr.FromInt32(0), intstr.FromInt32(1)
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(update.RollingUpdate.MaxSurge, &surge), int(m.count), true)
	fewer, wrong := intstr.GetScaledValueFromIntOrPercent(cmp.Or(update.RollingUpdate.MaxUnavailable, &unavailable), int(m.count), false)
	return (m.kind.Kind == "DaemonSet" || m.kind.Kind == "Deployment") && update.Type != string(appsv1.RecreateDeploymentStrategyType) &&
		err == nil && wrong == nil && more > 0 && fewer == 0
}

// slotsOf returns how many slots of a resource there are, as far as it is known: of a device,
// and of all devices if the author asks for Pods by their number.
func (m *Member) slotsOf(resource string) int64 {
	replicas, _ := templating.Keys("spec", "replicas").Lookup(m.source).(string)
	ofDevice := func(d templating.Instance) bool { return resource == v0.ResourceName(d.Name) }
	switch {
	case ofDevice(m.values.Instance), slices.ContainsFunc(m.values.Instances, ofDevice):
		return m.values.Capacity
	case resource == v0.ResourceName(m.values.Configuration) && strings.Contains(replicas, "INSTANCES"):
		return m.values.Capacity * int64(len(m.values.Instances)) // as wrong with another number of devices
	}
	return 0
}

// user is a member each of whose Pods has some slots of a resource, of all.
type user struct {
	*Member
	each, slots int64
}

// ofSlots warns of Pods that wait for a slot for ever: those of several templates that together
// want more slots than there are, and the new Pod of an update that starts it before an old one
// ends. A template alone may have more Pods than slots: they stand by.
func ofSlots(members []Member) (warnings templating.Diagnostics) {
	users := map[string][]user{}
	for i := range members {
		m := &members[i]
		for _, pod := range m.pods {
			for resource, each := range Requested(&pod.Spec) {
				if slots := m.slotsOf(resource); slots > 0 && m.count > 0 && m.labeled() {
					users[resource] = append(users[resource], user{m, each, slots})
				}
			}
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(users)) {
		all, total, surge := users[resource], int64(0), int64(0)
		for _, u := range all {
			if total += u.each * u.count; u.surges() {
				surge = max(surge, u.each)
			}
		}
		first, last := all[0], all[len(all)-1]
		if total > last.slots && first.name() != last.name() {
			warnings = append(warnings, last.at(nil, fmt.Sprintf("the Pods of this template and of %s want more slots of a device than there "+
				"are, so some wait for ever (slots wanted: %d, slots in all: %d)", first.name(), total, last.slots),
				fmt.Sprintf("set spec.capacity to %d or more, or request the device in fewer Pods", total+surge)))
			continue
		}
		for _, u := range all {
			if u.surges() && total+u.each > u.slots {
				warnings = append(warnings, u.updateWaits(total))
			}
		}
	}
	return warnings
}

// updateWaits warns of an update, if Pods have so many slots already.
func (u user) updateWaits(total int64) templating.Diagnostic {
	field, others := "strategy", ""
	if u.kind.Kind == "DaemonSet" {
		field = "updateStrategy"
	}
	if more := total - u.each*u.count; more > 0 {
		others = fmt.Sprintf(", slots of others: %d", more)
	}
	return u.at(templating.Keys("spec", field), fmt.Sprintf("an update waits for ever, because it starts a new Pod before it ends an old "+
		"one, and there is no slot for the new one (Pods: %d, slots for each: %d, slots in all: %d%s)", u.count, u.each, u.slots, others),
		strings.NewReplacer("Deployment", u.kind.Kind, "strategy", field).Replace(EndOldPodFirst))
}
