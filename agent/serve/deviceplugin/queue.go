package deviceplugin

import "sync"

// queue passes functions to the loop, in order and without blocking the sender.
// It holds only pending calls of the kubelet, events of Instances and responses of
// the API server.
type queue struct {
	mu    sync.Mutex
	items []func()
	ready chan struct{} // capacity 1
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
