package deviceplugin

import "sync"

// queue passes functions to the loop, in order and without blocking the sender.
// Its length is bounded by the calls of the kubelet, the events of Instances and
// the answers of the API server that are not handled yet.
type queue struct {
	mu    sync.Mutex
	items []func()
	ready chan struct{} // has room for one
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) post(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, f)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) take() []func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}
