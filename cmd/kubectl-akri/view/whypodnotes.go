package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
)

// notes returns what surprises users about the requests of a Pod, although it works.
func (f *Facts) notes() []string {
	var notes []string
	for _, warning := range advice.InitContainers(&f.Pod.Spec, nil) {
		notes = append(notes, warning.Cause.Error()+"; "+warning.Hint)
	}
	return append(notes, f.variableNotes()...)
}

// variableNotes names the variables that a container could get from devices of several
// resources. The kubelet chooses one of them.
func (f *Facts) variableNotes() []string {
	var notes []string
	for _, list := range [][]corev1.Container{f.Pod.Spec.InitContainers, f.Pod.Spec.Containers} {
		for i := range list {
			resources := slices.Sorted(maps.Keys(advice.DevicesOf(&list[i])))
			counts := map[string]int{}
			for _, resource := range resources {
				for name := range f.propertiesOf(resource) {
					counts[name]++
				}
			}
			maps.DeleteFunc(counts, func(_ string, count int) bool { return count < 2 })
			if len(counts) == 0 {
				continue
			}
			names := slices.Sorted(maps.Keys(counts))
			notes = append(notes, fmt.Sprintf("devices of %s have the same properties (%s): the kubelet chooses whose value a variable of the "+
				"container %s has; let the program read %s_HASH, where HASH is the last part of the Instance's name",
				strings.Join(resources, " and "), strings.Join(names, ", "), list[i].Name, names[0]))
		}
	}
	return notes
}

// propertiesOf returns the names of the properties that devices of a resource have.
func (f *Facts) propertiesOf(resource string) map[string]bool {
	names := map[string]bool{}
	for _, one := range f.Requested {
		if v0.ResourceName(one.parent().meta.Name) != resource {
			continue
		}
		for _, device := range one.Devices() {
			for name := range device.Spec.BrokerProperties {
				names[name] = true
			}
		}
	}
	return names
}
