package deviceplugin

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var podType = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}

// memoryPod is a Pod whose containers have IDs.
type memoryPod struct {
	object     *corev1.Pod
	containers []*memoryContainer
	running    bool
	ended      bool
	forced     bool // deleted by force: it runs, but the kubelet has forgotten its IDs
	// The kubelet stalls before it calls Allocate for a container, and before it records the
	// answer.
	stallBefore, stallAfter time.Duration
	// lag is how long the API server does not know a new status.
	lag time.Duration
}

// memoryContainer is a container that has got devices.
type memoryContainer struct {
	name, resource string
	ids            []string
	devices        []string // Instances, from the response
	init           bool
	began          time.Time // of its Allocate
	ghost          bool      // its Pod was deleted by force
	checked        bool      // at least once
	// excused are the slots, or the Instances of unknown slots, that users may have given
	// to others.
	excused map[string]bool
}

// newMemoryPod returns a Pod with one container, and a plain init container before it
// if requested. Both request count of a resource.
func newMemoryPod(name, resourceName string, count int, init bool) *memoryPod {
	limits := corev1.ResourceList{corev1.ResourceName(resourceName): *apiresource.NewQuantity(int64(count), apiresource.DecimalSI)}
	container := func(name string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}
	}
	object := &corev1.Pod{
		TypeMeta:   podType,
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container("app")}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if init {
		object.Spec.InitContainers = []corev1.Container{container("init")}
	}
	return &memoryPod{object: object}
}

// create lets the API server know a Pod that is bound to the node.
func (k *memoryKubelet) create(pod *memoryPod) {
	pod.object.Spec.NodeName = k.node
	k.api.putPod(pod.object.UID, pod.object)
}

// report lets the API server know the status of a Pod, some time later. The caller holds
// mu.
func (k *memoryKubelet) report(pod *memoryPod) {
	time.AfterFunc(pod.lag, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.api.hasPod(pod.object.UID) {
			k.api.putPod(pod.object.UID, pod.object)
		}
	})
}

// setPhase replaces the Pod's object. The caller holds mu.
func (k *memoryKubelet) setPhase(pod *memoryPod, phase corev1.PodPhase, state corev1.ContainerState) {
	pod.object = pod.object.DeepCopy()
	pod.object.Status.Phase = phase
	pod.object.Status.ContainerStatuses = nil
	for _, c := range pod.object.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, State: state}
		pod.object.Status.ContainerStatuses = append(pod.object.Status.ContainerStatuses, status)
	}
	if pod.object.Status.StartTime == nil {
		pod.object.Status.StartTime = &metav1.Time{Time: time.Now()}
	}
	k.report(pod)
}

// end terminates the containers of a Pod, and removes it.
func (k *memoryKubelet) end(pod *memoryPod, remove bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !pod.ended {
		pod.ended = true
		k.setPhase(pod, corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	}
	if remove {
		k.pods = slices.DeleteFunc(k.pods, func(other *memoryPod) bool { return other == pod })
		uid := pod.object.UID
		time.AfterFunc(pod.lag+10*time.Millisecond, func() { k.api.putPod(uid, nil) })
	}
}

// maxGhost bounds how long the containers of a Pod run that was deleted by force.
const maxGhost = 3300 * time.Millisecond

// force deletes a Pod by force. Its containers run on for some time.
func (k *memoryKubelet) force(pod *memoryPod, after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if pod.ended || pod.forced {
		return
	}
	pod.forced = true
	pod.object = pod.object.DeepCopy()
	pod.object.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	k.api.putPod(pod.object.UID, nil)
	time.AfterFunc(after, func() { k.end(pod, true) })
}

// holders returns the containers that may use their devices.
func (k *memoryKubelet) holders() []*memoryContainer {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []*memoryContainer
	for _, pod := range k.pods {
		if !pod.ended && len(pod.containers) > 0 {
			last := pod.containers[len(pod.containers)-1] // an init container has terminated when the next one starts
			last.ghost = pod.forced
			all = append(all, last)
		}
	}
	return all
}

// live returns the Pods that run or have ended, and still exist.
func (k *memoryKubelet) live() []*memoryPod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.pods), func(pod *memoryPod) bool { return !pod.running && !pod.ended })
}

// putPod stores a Pod, or removes it if the object is nil.
func (a *memoryAPI) putPod(uid types.UID, object *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.pods[uid]
	switch {
	case object == nil && before == nil:
	case object == nil:
		delete(a.pods, uid)
		a.record(before, nil)
	default:
		object = object.DeepCopy()
		a.pods[uid] = object
		if before == nil {
			a.record(nil, object)
		} else {
			a.record(before, object)
		}
	}
}

func (a *memoryAPI) hasPod(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[uid] != nil
}

// listPods returns the Pods of a node.
func (a *memoryAPI) listPods(node string) *corev1.PodList {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(a.version)}, Items: []corev1.Pod{}}
	for _, pod := range a.pods {
		if pod.Spec.NodeName == node {
			list.Items = append(list.Items, *pod)
		}
	}
	return list
}
