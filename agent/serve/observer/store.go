package observer

import (
	"sync"
	"time"
)

// vanishHold is how long a Pod that vanished before it terminated counts as running.
// The kubelet kills the container of a force-deleted Pod after 2 s (3.3 s was
// measured), but the Pod disappears from the API server and from the list at
// once.
const vanishHold = 5 * time.Second

// store holds the Pods of the node, as one source shows them.
type store struct {
	mu       sync.Mutex
	trusted  bool // all Pods of the node are known
	pods     map[string]podInfo
	vanished map[string]vanishedPod // deleted before they terminated

	// changed, of capacity 1, signals that a Pod that requests devices was created,
	// has terminated or was deleted.
	changed chan<- struct{}
}

type vanishedPod struct {
	pod   podInfo
	until time.Time
}

func newStore(changed chan<- struct{}) *store {
	return &store{pods: map[string]podInfo{}, vanished: map[string]vanishedPod{}, changed: changed}
}

// put records a Pod that exists.
func (s *store) put(pod podInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(pod)
}

// set implements put. The caller holds mu.
func (s *store) set(pod podInfo) {
	before, known := s.pods[pod.UID]
	delete(s.vanished, pod.UID)
	s.pods[pod.UID] = pod
	if pod.wantsDevices() && (!known || before.Terminated != pod.Terminated) {
		s.notify()
	}
}

// remove records a Pod's deletion. A Pod whose stop is not proven is held for
// vanishHold.
func (s *store) remove(uid string, proven bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(uid, proven)
}

// drop implements remove. The caller holds mu.
func (s *store) drop(uid string, proven bool) {
	pod := s.pods[uid]
	delete(s.pods, uid)
	if !pod.wantsDevices() {
		return
	}
	if !proven && !pod.Terminated {
		pod.Waiting = false // the kubelet may have admitted it just before
		s.vanished[uid] = vanishedPod{pod, time.Now().Add(vanishHold)}
	}
	s.notify()
}

// replace records all Pods of the node at once.
func (s *store) replace(pods []podInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := map[string]bool{}
	for _, pod := range pods {
		s.set(pod)
		current[pod.UID] = true
	}
	for uid := range s.pods {
		if !current[uid] {
			s.drop(uid, false)
		}
	}
}

// trust records whether every creation and deletion of a Pod is seen from now on.
func (s *store) trust(trusted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trusted = trusted; trusted {
		s.notify()
	}
}

// isTrusted reports whether all Pods of the node are known.
func (s *store) isTrusted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted
}

// snapshot returns the Pods, including those that vanished within vanishHold, and
// reports whether all Pods of the node are known.
func (s *store) snapshot() ([]podInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := make([]podInfo, 0, len(s.pods)+len(s.vanished))
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
