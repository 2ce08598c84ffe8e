package deviceplugin

import "sync"

// queue hands functions to the loop, in their order and without ever making their
// sender wait. It is as long as the kubelet has calls and the API server answers
// under way.
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
