package observer

import (
	"maps"
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
	readings map[*reading]bool      // under way

	// changed, of capacity 1, signals that a Pod that requests devices was created,
	// has terminated or was deleted.
	changed chan<- struct{}
}

// reading is a list of Pods that is being read.
type reading struct {
	touched map[string]bool // UIDs of the Pods that events have been about since it began
}

type vanishedPod struct {
	pod   podInfo
	until time.Time
}

func newStore(changed chan<- struct{}) *store {
	return &store{pods: map[string]podInfo{}, vanished: map[string]vanishedPod{}, readings: map[*reading]bool{}, changed: changed}
}

// put records a Pod that exists, as an event shows.
func (s *store) put(pod podInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(pod.UID)
	s.set(pod)
}

// touch records that an event was about a Pod. The caller holds mu.
func (s *store) touch(uid string) {
	for r := range s.readings {
		r.touched[uid] = true
	}
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

// remove records a Pod's deletion, as an event shows. A Pod whose stop is not proven is
// held for vanishHold.
func (s *store) remove(uid string, proven bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(uid)
	s.drop(uid, proven)
}

// drop implements remove. The caller holds mu.
func (s *store) drop(uid string, proven bool) {
	pod := s.pods[uid]
	delete(s.pods, uid)
	if !pod.wantsDevices() {
		return
	}
	if now := time.Now(); !proven && !pod.Terminated {
		pod.Waiting = false // the kubelet may have admitted it just before
		s.expire(now)       // nobody may take a snapshot for a long time
		s.vanished[uid] = vanishedPod{pod, now.Add(vanishHold)}
	}
	s.notify()
}

// expire forgets the Pods that vanished vanishHold ago. The caller holds mu.
func (s *store) expire(now time.Time) {
	maps.DeleteFunc(s.vanished, func(_ string, v vanishedPod) bool { return !now.Before(v.until) })
}

// replace records all Pods of the node at once.
func (s *store) replace(pods []podInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaceAll(pods, nil)
}

// replaceBy records all Pods of the node at once, as read returns them. It leaves out those
// that an event is about meanwhile: the list may be older than the event, and the watch will
// show what is newer than the event, but not the event again.
func (s *store) replaceBy(read func() ([]podInfo, error)) error {
	r := &reading{touched: map[string]bool{}}
	s.mu.Lock()
	s.readings[r] = true
	s.mu.Unlock()
	pods, err := read()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readings, r)
	if err == nil {
		s.replaceAll(pods, r.touched)
	}
	return err
}

// replaceAll records all Pods of the node, except for some. The caller holds mu.
func (s *store) replaceAll(pods []podInfo, except map[string]bool) {
	current := map[string]bool{}
	for _, pod := range pods {
		current[pod.UID] = true
		if !except[pod.UID] {
			s.set(pod)
		}
	}
	for uid := range s.pods {
		if !current[uid] && !except[uid] {
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
	s.expire(time.Now())
	for _, v := range s.vanished {
		pods = append(pods, v.pod)
	}
	return pods, s.trusted
}

func (s *store) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
