package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// filesChanged names the Pods that were started before the files of their device changed.
func (f *Facts) filesChanged() []finding.Mistake {
	var findings []finding.Mistake
	pods := f.explainedPods()
	for i := range pods {
		for _, one := range append([]*Facts{f}, f.Requested...) {
			for _, device := range one.Devices() {
				uses := func(s deviceSlot) bool { return slices.Contains(s.users, one.podName(&pods[i])) }
				had, has := filesOf(&pods[i], &device), device.Spec.BrokerProperties[v0.PropertyDevicePaths]
				if had == has || !slices.ContainsFunc(one.slotsOf(&device), uses) {
					continue
				}
				findings = append(findings, findingf(fmt.Sprintf("kubectl delete pod -n %s %s; with a variable of the value {{ INSTANCE_PROPERTIES.%s }} "+
					"in its template, Akri replaces it next time", pods[i].Namespace, pods[i].Name, v0.PropertyDevicePaths),
					"%s was started when the files of Instance %s were %s; now they are %s. A container that uses the device gets the former ones, "+
						"also when it restarts.", f.podName(&pods[i]), device.Name, had, has)...)
			}
		}
	}
	return findings
}

// filesOf returns the device files that a Pod got when it was started.
func filesOf(pod *corev1.Pod, device *v0.Instance) string {
	for line := range strings.SplitSeq(device.Annotations[v0.AnnotationFormerDevicePaths], "\n") {
		until, files, _ := strings.Cut(line, " ")
		if started := pod.Status.StartTime; started != nil && started.UTC().Format(time.RFC3339) < until {
			return files
		}
	}
	return device.Spec.BrokerProperties[v0.PropertyDevicePaths]
}
