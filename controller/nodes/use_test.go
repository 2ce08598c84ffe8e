package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func asking(name string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "other"},
			{Name: "user", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}}},
		}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestUse(t *testing.T) {
	early := asking("akri.sh/cam", corev1.PodRunning)
	early.Spec.InitContainers, early.Spec.Containers = early.Spec.Containers, nil
	requested := asking("akri.sh/cam", corev1.PodRunning)
	requested.Spec.Containers[1].Resources.Requests, requested.Spec.Containers[1].Resources.Limits = requested.Spec.Containers[1].Resources.Limits, nil
	none := asking("akri.sh/cam", corev1.PodRunning)
	none.Spec.Containers[1].Resources.Limits["akri.sh/cam"] = resource.MustParse("0")
	for name, tc := range map[string]struct {
		reason string
		pod    corev1.Pod
		want   bool
	}{
		"running":           {"it uses the Instance", asking("akri.sh/cam", corev1.PodRunning), true},
		"pending":           {"it is bound, and its node may have given it the device", asking("akri.sh/cam", corev1.PodPending), true},
		"of unknown phase":  {"nobody knows that it has ended", asking("akri.sh/cam", corev1.PodUnknown), true},
		"by Configuration":  {"it may use any Instance of the group", asking("akri.sh/cams", corev1.PodRunning), true},
		"init container":    {"sidecars are among them", early, true},
		"request":           {"limits and requests are the same for such resources", requested, true},
		"succeeded":         {"it has ended", asking("akri.sh/cam", corev1.PodSucceeded), false},
		"failed":            {"it has ended", asking("akri.sh/cam", corev1.PodFailed), false},
		"another Instance":  {"it uses something else", asking("akri.sh/door", corev1.PodRunning), false},
		"another vendor":    {"it uses something else", asking("example.com/cam", corev1.PodRunning), false},
		"none of it":        {"a request of zero gets nothing", none, false},
		"similar to prefix": {"the domain is compared whole", asking("akri.shop/cam", corev1.PodRunning), false},
	} {
		t.Run(name, func(t *testing.T) {
			used := use{}
			used.note([]corev1.Pod{asking("cpu", corev1.PodRunning), tc.pod})
			if got := used.of(device(true, nil)); got != tc.want {
				t.Errorf("%s: got %t (%v)", tc.reason, got, used)
			}
		})
	}
}
