package view

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// filesChanged names the Pods that were started before the files of their device changed.
func (f *Facts) filesChanged() (findings []finding.Mistake) {
	for _, pod := range f.explainedPods() {
		started := ptr.Deref(pod.Status.StartTime, metav1.NewTime(f.Now)).UTC().Format(time.RFC3339)
		for _, one := range append([]*Facts{f}, f.Requested...) {
			for _, device := range one.Devices() {
				has := device.Spec.BrokerProperties[v0.PropertyDevicePaths]
				had := has
				for line := range strings.SplitSeq(device.Annotations[v0.AnnotationFormerDevicePaths], "\n") {
					if until, former, _ := strings.Cut(line, " "); former != "" && started < until {
						had = former
					}
				}
				uses := func(s deviceSlot) bool { return slices.Contains(s.users, one.podName(&pod)) }
				if had != has && slices.ContainsFunc(one.slotsOf(&device), uses) {
					findings = append(findings, findingf("kubectl delete pod -n "+pod.Namespace+" "+pod.Name+"; with a variable that has the value "+
						"{{ INSTANCE_PROPERTIES."+v0.PropertyDevicePaths+" }} in its template, Akri replaces it next time",
						"%s was started when the device files of Instance %s were %s; now they are %s. Containers that use the device get the "+
							"former ones, also when they restart.", f.podName(&pod), device.Name, had, has)...)
				}
			}
		}
	}
	return findings
}
