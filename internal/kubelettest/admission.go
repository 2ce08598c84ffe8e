package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Admit admits a Pod as the kubelet's sync loop does, one Pod at a time. It calls
// Allocate for each container and resource, init containers first. If it returns an
// error, the Pod has failed. Admit sets the Pod's UID.
func (k *Kubelet) Admit(pod *corev1.Pod) error {
	k.Create(pod)
	k.inAdmission.Lock()
	defer k.inAdmission.Unlock()
	k.mu.Lock()
	state := k.add(pod)
	k.mu.Unlock()

	reusable := map[string][]string{} // of plain init containers, by resource
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		plain := slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool {
			return i.Name == c.Name && (i.RestartPolicy == nil || *i.RestartPolicy != corev1.ContainerRestartPolicyAlways)
		})
		for name, quantity := range c.Resources.Limits {
			if !strings.Contains(string(name), "/") {
				continue
			}
			ids, err := k.allocate(state, c.Name, string(name), int(quantity.Value()), reusable[string(name)])
			if err != nil {
				k.fail(state)
				return err
			}
			if plain {
				reusable[string(name)] = append(reusable[string(name)], without(ids, reusable[string(name)])...)
			} else {
				reusable[string(name)] = without(reusable[string(name)], ids)
			}
		}
	}
	k.bookkeeping.RLock()
	defer k.bookkeeping.RUnlock()
	k.setPhase(state, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	return nil
}

// add adds a Pod that is being admitted. The caller holds mu.
func (k *Kubelet) add(pod *corev1.Pod) *podState {
	pod.Status.Phase = corev1.PodPending
	state := &podState{pod: pod, ids: map[string]map[string][]string{}, responses: map[string][]*plugin.ContainerAllocateResponse{}}
	k.pods[string(pod.UID)] = state
	k.order = append(k.order, string(pod.UID))
	return state
}

func without(ids, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(gone, id) })
}

// allocate gives a container ids of a resource: first those that an init container of
// the Pod had, then healthy ones that no container has.
func (k *Kubelet) allocate(state *podState, container, resource string, count int, reusable []string) ([]string, error) {
	k.mu.Lock()
	p := k.plugins[resource]
	var chosen, available []string
	if p != nil {
		chosen = slices.Clone(reusable[:min(count, len(reusable))])
		used := k.used(resource)
		for id, health := range p.devices {
			if health == plugin.Healthy && !used[id] && p.connected {
				available = append(available, id)
			}
		}
	}
	k.mu.Unlock()
	if p == nil || len(chosen)+len(available) < count {
		return nil, fmt.Errorf("UnexpectedAdmissionError: %s: requested: %d, available: %d", resource, count, len(available))
	}
	slices.Sort(available)
	if need := count - len(chosen); need > 0 {
		if p.preferred {
			available = k.prefer(p, available, chosen, count)
		}
		chosen = append(chosen, available[:need]...)
	}
	k.mu.Lock()
	k.calls = append(k.calls, "Allocate "+strings.Join(chosen, " "))
	k.inCall++
	k.mu.Unlock()
	response, err := p.client.Allocate(context.Background(), &plugin.AllocateRequest{
		ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: chosen}},
	})
	k.mu.Lock()
	k.inCall--
	k.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("UnexpectedAdmissionError: %w", err)
	}
	k.bookkeeping.RLock()
	defer k.bookkeeping.RUnlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range chosen {
		if _, there := k.plugins[resource].devices[id]; !there {
			k.crashes++ // allocateContainerResources reads the topology of a nil device
		}
	}
	if state.ids[container] == nil {
		state.ids[container] = map[string][]string{}
	}
	state.ids[container][resource] = chosen
	if len(response.GetContainerResponses()) == 0 {
		return nil, errors.New("no containers return in allocation response")
	}
	state.responses[container] = append(state.responses[container], response.GetContainerResponses()[0])
	return chosen, nil
}

// prefer moves the ids that the plugin prefers to the front of the available ones.
func (k *Kubelet) prefer(p *pluginState, available, must []string, count int) []string {
	response, err := p.client.GetPreferredAllocation(context.Background(), &plugin.PreferredAllocationRequest{
		ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: append(slices.Clone(must), available...), MustIncludeDeviceIDs: must, AllocationSize: int32(count),
		}},
	})
	if err != nil || len(response.GetContainerResponses()) == 0 {
		return available
	}
	var front []string
	for _, id := range response.GetContainerResponses()[0].GetDeviceIDs() {
		if slices.Contains(available, id) {
			front = append(front, id)
		}
	}
	return append(front, without(available, front)...)
}

// used returns the ids of a resource that Pods have. As in the kubelet, a force-deleted
// Pod has none. The caller holds mu.
func (k *Kubelet) used(resource string) map[string]bool {
	used := map[string]bool{}
	for _, state := range k.pods {
		if state.ended || state.unlisted {
			continue
		}
		for _, byResource := range state.ids {
			for _, id := range byResource[resource] {
				used[id] = true
			}
		}
	}
	return used
}

// Stall stops the kubelet's sync loop between the response to an Allocate and its
// effect, until release is called. The list is served meanwhile.
func (k *Kubelet) Stall() (release func()) {
	k.bookkeeping.Lock()
	return k.bookkeeping.Unlock
}

func (k *Kubelet) fail(state *podState) {
	k.setPhase(state, corev1.PodFailed, corev1.ContainerState{})
	k.mu.Lock()
	defer k.mu.Unlock()
	state.ended = true
}

// End terminates a Pod's containers: its phase is final, and its devices are free.
func (k *Kubelet) End(pod *corev1.Pod) {
	k.mu.Lock()
	state := k.pods[string(pod.UID)]
	state.ended = true
	k.mu.Unlock()
	k.setPhase(state, corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
}

// Remove deletes a Pod whose containers have terminated.
func (k *Kubelet) Remove(pod *corev1.Pod) {
	k.mu.Lock()
	delete(k.pods, string(pod.UID))
	k.order = slices.DeleteFunc(k.order, func(uid string) bool { return uid == string(pod.UID) })
	k.mu.Unlock()
	k.delete(pod)
}

// Show adds a running Pod that has no ids.
func (k *Kubelet) Show(pod *corev1.Pod) {
	k.Create(pod)
	k.mu.Lock()
	state := k.add(pod)
	k.mu.Unlock()
	k.setPhase(state, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

// Duplicate adds a running Pod whose container has the IDs of another Pod, too, as a kubelet
// does that has forgotten a reservation.
func (k *Kubelet) Duplicate(pod, of *corev1.Pod) {
	k.Create(pod)
	k.mu.Lock()
	state := k.add(pod)
	state.ids = k.pods[string(of.UID)].ids
	k.mu.Unlock()
	k.setPhase(state, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

// ForceDelete removes a Pod from the list while its containers keep running, as a
// deletion with a grace period of zero does.
func (k *Kubelet) ForceDelete(pod *corev1.Pod) {
	k.delete(pod)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[string(pod.UID)].unlisted = true
}

// Responses returns the responses for a container of a Pod.
func (k *Kubelet) Responses(pod *corev1.Pod, container string) []*plugin.ContainerAllocateResponse {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[string(pod.UID)].responses[container]
}

// IDs returns the ids of a resource that a container has.
func (k *Kubelet) IDs(pod *corev1.Pod, container, resource string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[string(pod.UID)].ids[container][resource]
}

func (k *Kubelet) setPhase(state *podState, phase corev1.PodPhase, s corev1.ContainerState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := state.pod.DeepCopy()
	changed.Status.Phase = phase
	changed.Status.ContainerStatuses = nil
	for _, c := range changed.Spec.Containers {
		changed.Status.ContainerStatuses = append(changed.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: s})
	}
	if changed.Status.StartTime == nil {
		changed.Status.StartTime = &metav1.Time{Time: time.Now()}
	}
	state.pod = changed
	if k.api != nil && !state.unlisted {
		k.api.reports <- changed
	}
}
