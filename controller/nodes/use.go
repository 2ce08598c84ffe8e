package nodes

import (
	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
)

// use is what the Pods of a node ask for: names of Instances and Configurations.
type use map[string]bool

// note adds what Pods ask for that have not ended. One that is being deleted has
// not: on a node that nobody hears of, it may run for ever.
func (u use) note(pods []corev1.Pod) {
	for i := range pods {
		if phase := pods[i].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		for _, containers := range [][]corev1.Container{pods[i].Spec.InitContainers, pods[i].Spec.Containers} {
			for _, container := range containers {
				u.noteList(container.Resources.Requests)
				u.noteList(container.Resources.Limits)
			}
		}
	}
}

func (u use) noteList(resources corev1.ResourceList) {
	for resource, quantity := range resources {
		if name, ours := nameIn(resource); ours && !quantity.IsZero() {
			u[name] = true
		}
	}
}

// of tells whether an Instance may be in use. A Pod that asks by the
// Configuration's name may use any of its Instances.
func (u use) of(instance *v0.Instance) bool {
	return u[instance.Name] || u[instance.Spec.ConfigurationName]
}
