package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func requesting(name string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "other"},
			{Name: "user", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}}},
		}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestUse(t *testing.T) {
	early := requesting("akri.sh/cam", corev1.PodRunning)
	early.Spec.InitContainers, early.Spec.Containers = early.Spec.Containers, nil
	requested := requesting("akri.sh/cam", corev1.PodRunning)
	resources := &requested.Spec.Containers[1].Resources
	resources.Requests, resources.Limits = resources.Limits, nil
	none := requesting("akri.sh/cam", corev1.PodRunning)
	none.Spec.Containers[1].Resources.Limits["akri.sh/cam"] = resource.MustParse("0")
	for name, tc := range map[string]struct {
		reason string
		pod    corev1.Pod
		want   bool
	}{
		"running":           {"it uses the Instance", requesting("akri.sh/cam", corev1.PodRunning), true},
		"pending":           {"it is bound, and its node may have allocated the device", requesting("akri.sh/cam", corev1.PodPending), true},
		"of unknown phase":  {"it may not have terminated", requesting("akri.sh/cam", corev1.PodUnknown), true},
		"by Configuration":  {"it may use any Instance of the group", requesting("akri.sh/cams", corev1.PodRunning), true},
		"init container":    {"init containers may be sidecars", early, true},
		"request":           {"limits and requests of extended resources are equal", requested, true},
		"succeeded":         {"it has terminated", requesting("akri.sh/cam", corev1.PodSucceeded), false},
		"failed":            {"it has terminated", requesting("akri.sh/cam", corev1.PodFailed), false},
		"another Instance":  {"it uses something else", requesting("akri.sh/door", corev1.PodRunning), false},
		"another vendor":    {"it uses something else", requesting("example.com/cam", corev1.PodRunning), false},
		"none of it":        {"a request of zero allocates nothing", none, false},
		"similar to prefix": {"the whole domain is compared", requesting("akri.shop/cam", corev1.PodRunning), false},
	} {
		t.Run(name, func(t *testing.T) {
			used := map[string]int64{}
			addUse(used, []corev1.Pod{requesting("cpu", corev1.PodRunning), tc.pod})
			if got := uses(used, device(true, nil)); got != tc.want {
				t.Errorf("%s: got %t (%v)", tc.reason, got, used)
			}
		})
	}
}
