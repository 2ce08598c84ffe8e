package observer

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/metadata"
)

// podInfo holds what the accounting needs to know about a Pod: its requests for
// Akri's resources, and whether it has terminated. Of the metadata, it has what names the
// Pod.
type podInfo struct {
	metav1.ObjectMeta
	// Requests is how many devices of each resource the list must show: the sum
	// over containers and sidecars.
	Requests map[string]int
	// Hidden are the resources that have ids which only a plain init container of
	// the Pod got. The list never shows them, and the kubelet keeps them until the
	// Pod ends.
	Hidden map[string]bool
	// Terminated means that no container of the Pod runs or will run again.
	Terminated bool
	// Waiting means that the kubelet has not reported that it has admitted the Pod.
	Waiting bool
}

// key returns the Pod's name as the podresources list shows it.
func (p podInfo) key() string { return p.Namespace + "/" + p.Name }

// wantsDevices reports whether the Pod requests any of Akri's resources.
func (p podInfo) wantsDevices() bool { return len(p.Requests) > 0 || len(p.Hidden) > 0 }

// readPod returns what the observer reads of a Pod: a *podInfo.
func readPod(pod *corev1.Pod) metav1.Object {
	read := &podInfo{
		ObjectMeta: metadata.Identity(pod), Terminated: terminated(pod), Waiting: pod.Status.StartTime == nil,
	}
	reusable := map[string]int{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		for name, count := range deviceCounts(pod, c) {
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				read.request(name, count, reusable)
			} else {
				reusable[name] = max(reusable[name], count)
			}
		}
	}
	for i := range pod.Spec.Containers {
		for name, count := range deviceCounts(pod, &pod.Spec.Containers[i]) {
			read.request(name, count, reusable)
		}
	}
	for name, count := range reusable {
		if count > 0 {
			if read.Hidden == nil {
				read.Hidden = map[string]bool{}
			}
			read.Hidden[name] = true
		}
	}
	return read
}

// request adds the devices of a container or a sidecar. As in the kubelet
// (devicesToReuse in pkg/kubelet/cm/devicemanager), it first gets ids of the plain
// init containers before it, and these are not given to a third container.
func (p *podInfo) request(name string, count int, reusable map[string]int) {
	if p.Requests == nil {
		p.Requests = map[string]int{}
	}
	p.Requests[name] += count
	reusable[name] -= min(count, reusable[name])
}

// terminated reports whether the phase is final, or the Pod is being deleted and its
// containers have terminated; in both cases no status may show a running
// container. A crash-looping Pod has terminated containers too, but they restart.
func terminated(pod *corev1.Pod) bool {
	status := &pod.Status
	runs := func(s corev1.ContainerStatus) bool { return s.State.Running != nil }
	if slices.ContainsFunc(slices.Concat(status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses), runs) {
		return false
	}
	stopped := len(status.ContainerStatuses) > 0 && !slices.ContainsFunc(status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated == nil
	})
	return status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil && stopped
}

// deviceCounts returns how many devices of each of Akri's resources a container requests
// from the device plugin, instead of by DRA (status.extendedResourceClaimStatus).
func deviceCounts(pod *corev1.Pod, c *corev1.Container) map[string]int {
	var counts map[string]int
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, quantity := range list {
			resource, ours := strings.CutPrefix(string(name), v0.Domain+"/")
			if !ours || claimed(pod, c.Name, string(name)) || quantity.Value() <= 0 {
				continue
			}
			if counts == nil {
				counts = map[string]int{}
			}
			counts[resource] = int(quantity.Value())
		}
	}
	return counts
}

// claimed reports whether a request is served by DRA.
func claimed(pod *corev1.Pod, container, resource string) bool {
	claim := pod.Status.ExtendedResourceClaimStatus
	return claim != nil && slices.ContainsFunc(claim.RequestMappings, func(r corev1.ContainerExtendedResourceRequest) bool {
		return r.ContainerName == container && r.ResourceName == resource
	})
}
