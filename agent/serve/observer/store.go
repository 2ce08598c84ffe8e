package observer

import (
	"sync"
	"time"
)

// vanishHold is how long a pod that vanished before it ended counts as running.
// The kubelet kills the container of a force-deleted pod after 2 s (3.3 s was
// measured), but the pod disappears from the API server and from the list at
// once.
const vanishHold = 5 * time.Second

// store holds the node's pods that request Akri's resources.
type store struct {
	mu       sync.Mutex
	trusted  bool // all pods of the node are known
	pods     map[string]podInfo
	vanished map[string]vanishedPod // deleted before they ended

	changed chan struct{} // capacity 1
}

type vanishedPod struct {
	pod   podInfo
	until time.Time
}

func newStore() *store {
	return &store{pods: map[string]podInfo{}, vanished: map[string]vanishedPod{}, changed: make(chan struct{}, 1)}
}

// put records a pod that exists.
func (s *store) put(pod podInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.pods[pod.UID]
	delete(s.vanished, pod.UID)
	if pod.wantsDevices() {
		s.pods[pod.UID] = pod
	} else {
		delete(s.pods, pod.UID)
	}
	if known || pod.wantsDevices() {
		s.notify()
	}
}

// remove records a pod's deletion. A pod whose stop is not proven is held for
// vanishHold.
func (s *store) remove(uid string, proven bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(uid, proven)
}

// drop implements remove. The caller holds mu.
func (s *store) drop(uid string, proven bool) {
	pod, known := s.pods[uid]
	if !known {
		return
	}
	delete(s.pods, uid)
	if !proven && !pod.Ended {
		s.vanished[uid] = vanishedPod{pod, time.Now().Add(vanishHold)}
	}
	s.notify()
}

// replace records all pods of the node at once. The store is trusted from now on.
func (s *store) replace(pods []podInfo) {
	current := map[string]bool{}
	for _, pod := range pods {
		s.put(pod)
		current[pod.UID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.pods {
		if !current[uid] {
			s.drop(uid, false)
		}
	}
	s.trusted = true
	s.notify()
}

// distrust records that pods may be created and deleted unnoticed from now on.
func (s *store) distrust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = false
}

// snapshot returns the pods, including those that vanished within vanishHold, and
// reports whether all pods of the node are known.
func (s *store) snapshot() ([]podInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []podInfo
	for _, pod := range s.pods {
		pods = append(pods, pod)
	}
	for uid, v := range s.vanished {
		if time.Now().Before(v.until) {
			pods = append(pods, v.pod)
		} else {
			delete(s.vanished, uid)
		}
	}
	return pods, s.trusted
}

func (s *store) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
