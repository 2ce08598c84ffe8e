package advice

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
)

// Requested returns the number of devices of Akri that a Pod requests, by resource. As for
// the scheduler, init containers do not add to the others, because they have terminated,
// unless they are sidecars.
func Requested(pod *corev1.PodSpec) map[string]int64 {
	requested := map[string]int64{}
	add := func(container *corev1.Container) {
		for name, amount := range DevicesOf(container) {
			requested[name] += amount
		}
	}
	for i := range pod.Containers {
		add(&pod.Containers[i])
	}
	for i := range pod.InitContainers {
		if isSidecar(&pod.InitContainers[i]) {
			add(&pod.InitContainers[i])
		}
	}
	for i := range pod.InitContainers {
		for name, amount := range DevicesOf(&pod.InitContainers[i]) {
			requested[name] = max(requested[name], amount)
		}
	}
	return requested
}

// isSidecar reports whether an init container runs as long as the Pod.
func isSidecar(init *corev1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// DevicesOf returns the devices that a container requests. Requests of devices equal their
// limits, if both are set.
func DevicesOf(container *corev1.Container) map[string]int64 {
	devices := map[string]int64{}
	for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
		for name, amount := range list {
			if strings.HasPrefix(string(name), v0.Domain+"/") {
				devices[string(name)] = amount.Value()
			}
		}
	}
	return devices
}
