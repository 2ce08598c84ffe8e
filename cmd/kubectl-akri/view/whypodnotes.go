package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
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

// filesChanged names the Pods that were started before the files of their device changed.
func (f *Facts) filesChanged() (findings []finding.Mistake) {
	for _, pod := range f.explainedPods() {
		started := ptr.Deref(pod.Status.StartTime, metav1.NewTime(f.Now)).UTC().Format(time.RFC3339)
		for _, one := range append([]*Facts{f}, f.Requested...) {
			for _, device := range one.Devices() {
				changed, former, _ := strings.Cut(device.Annotations[v0.AnnotationFormerDevicePaths], " ")
				uses := func(s Slot) bool {
					return s.Instance == device.Name && slices.Contains(one.users(&s), one.podName(&pod))
				}
				if started < changed && slices.ContainsFunc(one.Slots, uses) {
					findings = append(findings, findingf("kubectl delete pod -n "+pod.Namespace+" "+pod.Name+"; with a variable that has the value "+
						"{{ INSTANCE_PROPERTIES."+v0.PropertyDevicePaths+" }} in its template, Akri replaces it next time",
						"%s was started before the device files of Instance %s changed from %s to %s. Containers that use the device get the "+
							"former files, even when they restart.", f.podName(&pod), device.Name, former,
						cmp.Or(device.Spec.BrokerProperties[v0.PropertyDevicePaths], "none"))...)
				}
			}
		}
	}
	return findings
}
