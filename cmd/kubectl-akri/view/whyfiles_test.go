package view

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// The files of the device were 0 until 11:30, and are 2 since.
func TestFilesChanged(t *testing.T) {
	startedAt := func(pod corev1.Pod, hour, minute int) corev1.Pod {
		pod.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, hour, minute, 0, 0, time.Local)}
		return pod
	}
	changed := func(pods ...corev1.Pod) func(*Facts) {
		return func(f *Facts) {
			f.Instance.Spec.BrokerProperties[v0.PropertyDevicePaths] = "/dev/2"
			at := time.Date(2026, 1, 1, 11, 30, 0, 0, time.Local).UTC().Format(time.RFC3339)
			f.Instance.Annotations = map[string]string{v0.AnnotationFormerDevicePaths: at + " /dev/0"}
			f.Pods = pods
		}
	}
	byGroup := startedAt(pod("group", "node1", "akri.sh/cam"), 10, 30)
	ended := startedAt(pod("ended", "node1", "akri.sh/cam-1"), 10, 30)
	ended.Status.Phase = corev1.PodSucceeded
	first := startedAt(pod("one", "node1", "akri.sh/cam-1"), 9, 0)
	gone := healthy(changed(first))
	delete(gone.Instance.Spec.BrokerProperties, v0.PropertyDevicePaths)
	const one = "Pod one was started before the device files of Instance cam-1 changed from /dev/0 to "
	group := healthy(changed(byGroup))
	group.Instance.Spec.DeviceUsage["cam-1-0"] = "C:0:node1"
	configuration := served(nil)
	configuration.Instances[0] = *group.Instance
	configuration.Instances[0].Spec.ConfigurationName = configuration.Configuration.Name
	configuration.Pods = []corev1.Pod{byGroup}
	elsewhere := startedAt(pod("two", "node2", "akri.sh/cam-1"), 9, 0)
	for name, c := range map[string]struct {
		facts *Facts
		want  []string
	}{
		"before the change": {healthy(changed(first)), []string{one + "/dev/2. Containers that use " +
			"the device get the former files, even when they restart. → kubectl delete pod -n plant one; with a variable that has the value " +
			"{{ INSTANCE_PROPERTIES.AKRI_DEVICE_PATHS }} in its template, Akri replaces it next time"}},
		"after the change":              {healthy(changed(startedAt(first, 11, 45))), []string{"No problem found"}},
		"a device without files":        {gone, []string{one + "none. "}},
		"a Pod that has not started":    {healthy(changed(pod("one", "node1", "akri.sh/cam-1"))), []string{"No problem found"}},
		"on another node":               {healthy(changed(startedAt(first, 11, 45), elsewhere)), []string{"No problem found"}},
		"a Pod that has ended":          {healthy(changed(startedAt(first, 11, 45), ended)), []string{"No problem found"}},
		"through the Configuration":     {group, []string{"Pod group was started before"}},
		"on the Pod's page":             {podFacts(first, changed()), []string{one + "/dev/2"}},
		"on the Configuration's page":   {configuration, []string{"Pod group was started before"}},
		"a device that never had files": {healthy(nil), []string{"No problem found"}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, c.facts, c.want) })
	}
}
