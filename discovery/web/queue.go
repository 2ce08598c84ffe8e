package web

import "sync"

// maxHostRequests is the number of requests at the same time to one host, such as a gateway
// with many devices. Each one that times out permits another one for the rest of the scan:
// devices that hang do not burden the host, and the others must not wait for all of them.
const maxHostRequests = 4

// queue has the targets of a scan that have not been requested yet. It is safe for
// concurrent use.
type queue struct {
	mu    sync.Mutex
	ended *sync.Cond   // a request has ended
	hosts []*hostQueue // those whose targets wait
}

// hostQueue has the targets of one host.
type hostQueue struct {
	waiting         []int // the indexes of targets
	requests, limit int
}

// newQueue returns a queue with the results that have an error.
func newQueue(results []result) *queue {
	q := &queue{}
	q.ended = sync.NewCond(&q.mu)
	known := map[string]*hostQueue{}
	for i, r := range results {
		if r.err == nil {
			continue
		}
		origin := originOf(r.target.url)
		host := known[origin]
		if host == nil {
			host = &hostQueue{limit: maxHostRequests}
			known[origin] = host
			q.hosts = append(q.hosts, host)
		}
		host.waiting = append(host.waiting, i)
	}
	return q
}

// wait waits until a target may be requested. It reports false if there is none left.
func (q *queue) wait() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.hosts) > 0 && q.next() < 0 {
		q.ended.Wait()
	}
	return len(q.hosts) > 0
}

// next returns the index of a host whose target may be requested, or -1.
func (q *queue) next() int {
	for i, host := range q.hosts {
		if host.requests < host.limit {
			return i
		}
	}
	return -1
}

// take returns the index of a target that may be requested, if there is one. The caller
// calls end when the request has ended.
func (q *queue) take() (index int, end func(timedOut bool), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.next()
	if at < 0 {
		return 0, nil, false
	}
	host := q.hosts[at]
	index, host.waiting = host.waiting[0], host.waiting[1:]
	if len(host.waiting) == 0 {
		q.hosts = append(q.hosts[:at], q.hosts[at+1:]...)
	}
	host.requests++
	return index, func(timedOut bool) { q.end(host, timedOut) }, true
}

func (q *queue) end(host *hostQueue, timedOut bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	host.requests--
	if timedOut {
		host.limit++
	}
	q.ended.Broadcast()
}
