package witness

import (
	"sync"
	"time"
)

// vanishHold is how long a pod that vanished without an end counts as running.
// The kubelet kills the container of a force-deleted pod after 2 s, seen up to
// 3.3 s; a pod is gone from the API server and from the list at once.
const vanishHold = 5 * time.Second

// store holds the node's pods that ask for our resources.
type store struct {
	mu      sync.Mutex
	trusted bool // all pods of the node are known
	pods    map[string]Pod
	ghosts  map[string]ghost // vanished without an end

	changed chan struct{} // has room for one
}

type ghost struct {
	pod   Pod
	until time.Time
}

func newStore() *store {
	return &store{pods: map[string]Pod{}, ghosts: map[string]ghost{}, changed: make(chan struct{}, 1)}
}

// put takes notice of a pod.
func (s *store) put(pod Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.pods[pod.UID]
	delete(s.ghosts, pod.UID)
	if pod.wants() {
		s.pods[pod.UID] = pod
	} else {
		delete(s.pods, pod.UID)
	}
	if known || pod.wants() {
		s.notify()
	}
}

// remove takes notice of a pod's removal; proven says that its containers have
// stopped.
func (s *store) remove(uid string, proven bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(uid, proven)
}

func (s *store) drop(uid string, proven bool) {
	pod, known := s.pods[uid]
	if !known {
		return
	}
	delete(s.pods, uid)
	if !proven && !pod.Ended {
		s.ghosts[uid] = ghost{pod, time.Now().Add(vanishHold)}
	}
	s.notify()
}

// replace takes notice of all pods of the node at one moment.
func (s *store) replace(pods []Pod) {
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

// distrust says that pods may come and go unnoticed from now on.
func (s *store) distrust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = false
}

// snapshot returns the pods, those that vanished lately among them; false if they
// are not all known.
func (s *store) snapshot() ([]Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []Pod
	for _, pod := range s.pods {
		pods = append(pods, pod)
	}
	for uid, g := range s.ghosts {
		if time.Now().Before(g.until) {
			pods = append(pods, g.pod)
		} else {
			delete(s.ghosts, uid)
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
