package observer

// kubeletPods copies the Pods of the kubelet's Pods API into a store. It is a
// [kubelet.PodEvents].
type kubeletPods struct {
	store  *store
	synced func()             // called when the store is complete
	first  map[string]podInfo // by UID; nil after Synced
}

func newKubeletPods(s *store, synced func()) *kubeletPods {
	return &kubeletPods{store: s, synced: synced, first: map[string]podInfo{}}
}

func (k *kubeletPods) Put(message []byte) error {
	pod, err := decodePod(message)
	if err != nil {
		return err
	}
	if k.first == nil {
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
	k.first = nil
	k.store.replace(pods)
	k.store.trust(true)
	k.synced()
}
