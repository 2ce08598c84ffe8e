package observer

// kubeletPods copies the pods of the kubelet's Pods API into a store. It is a
// [kubelet.PodEvents].
type kubeletPods struct {
	store  *store
	synced bool
	first  map[string]podInfo // by UID, until Synced
}

func newKubeletPods(s *store) *kubeletPods {
	return &kubeletPods{store: s, first: map[string]podInfo{}}
}

func (k *kubeletPods) Put(message []byte) error {
	pod, err := decodePod(message)
	if err != nil {
		return err
	}
	if k.synced {
		k.store.put(pod)
	} else {
		k.first[pod.UID] = pod
	}
	return nil
}

func (k *kubeletPods) Delete(message []byte) error {
	pod, err := decodePod(message)
	if err != nil {
		return err
	}
	delete(k.first, pod.UID)
	k.store.remove(pod.UID, true)
	return nil
}

func (k *kubeletPods) Synced() {
	pods := make([]podInfo, 0, len(k.first))
	for _, pod := range k.first {
		pods = append(pods, pod)
	}
	k.store.replace(pods)
	k.first, k.synced = map[string]podInfo{}, true
}
