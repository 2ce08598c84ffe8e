package nodes

import (
	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
)

// use holds the names of the Instances and Configurations whose resources the Pods
// of a node request.
type use map[string]bool

// add adds the requests of Pods that have not terminated. A Pod that is being
// deleted has not: on an unreachable node, it may run forever.
func (u use) add(pods []corev1.Pod) {
	for i := range pods {
		if phase := pods[i].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		for resource, amount := range advice.Requested(&pods[i].Spec) {
			if name, _ := nameIn(corev1.ResourceName(resource)); amount > 0 {
				u[name] = true
			}
		}
	}
}

// includes reports whether an Instance may be in use. A Pod that requests the
// Configuration's resource may use any of its Instances.
func (u use) includes(instance *v0.Instance) bool {
	return u[instance.Name] || u[instance.Spec.ConfigurationName]
}
