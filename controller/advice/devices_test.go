package advice

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Init containers give what they have to those after them, and sidecars do not.
func TestRequested(t *testing.T) {
	container := func(devices map[corev1.ResourceName]string) corev1.Container {
		limits := corev1.ResourceList{"memory": resource.MustParse("1Gi")}
		for name, amount := range devices {
			limits[name] = resource.MustParse(amount)
		}
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}
	}
	cam := container(map[corev1.ResourceName]string{"akri.sh/cam": "1"})
	sidecar := cam
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	got := Requested(&corev1.PodSpec{
		Containers:     []corev1.Container{cam, cam},
		InitContainers: []corev1.Container{container(map[corev1.ResourceName]string{"akri.sh/cam": "1", "akri.sh/other": "3"}), sidecar},
	})
	if want := map[string]int64{"akri.sh/cam": 3, "akri.sh/other": 3}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
