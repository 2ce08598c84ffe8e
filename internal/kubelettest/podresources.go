package kubelettest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Pod returns a Pod with one container "app" that requests devices.
func Pod(name, resourceName string, count int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{Container("app", resourceName, count)}},
	}
}

// Container returns a container that requests devices.
func Container(name, resourceName string, count int64) corev1.Container {
	list := corev1.ResourceList{corev1.ResourceName(resourceName): *resource.NewQuantity(count, resource.DecimalSI)}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}
}

// lister is the podresources service.
type lister struct {
	podresources.UnimplementedPodResourcesListerServer
	k *Kubelet
}

func (l *lister) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	l.k.mu.Lock()
	broken, given := l.k.listErr, l.k.list
	if l.k.inCall > 0 {
		l.k.overlaps++
	}
	l.k.mu.Unlock()
	if broken != nil {
		return nil, broken(ctx)
	}
	if given != nil {
		return given, nil
	}
	response := &podresources.ListPodResourcesResponse{}
	if !l.k.ready() {
		return response, nil // no error, as in the kubelet
	}
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	for _, uid := range l.k.order {
		state := l.k.pods[uid]
		if state.ended || state.unlisted {
			continue // a Pod in admission is listed, without the ids that it does not have yet
		}
		entry := &podresources.PodResources{Name: state.pod.Name, Namespace: state.pod.Namespace}
		for _, c := range listed(state.pod) {
			one := &podresources.ContainerResources{Name: c}
			for name, ids := range state.ids[c] {
				for _, id := range ids {
					one.Devices = append(one.Devices, &podresources.ContainerDevices{ResourceName: name, DeviceIds: []string{id}})
				}
			}
			entry.Containers = append(entry.Containers, one)
		}
		response.PodResources = append(response.PodResources, entry)
	}
	return response, nil
}

// listed returns the containers in the list, which omits plain init containers.
func listed(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names = append(names, c.Name)
		}
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	return names
}

// BreakList makes the list fail with the result of a function, which may block. nil
// repairs it.
func (k *Kubelet) BreakList(result func(context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listErr = result
}

// AnswerList makes the list a given one, which need not have the Pods of the kubelet, or be
// well-formed. nil repairs it.
func (k *Kubelet) AnswerList(list *podresources.ListPodResourcesResponse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = list
}
