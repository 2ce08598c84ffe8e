package webhook

import (
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// maxParallel limits the requests to the API server that one review has in flight.
const maxParallel = 4

// parallel runs functions concurrently. wait re-panics in the caller, whose handler
// recovers; otherwise a panic would crash the process.
type parallel struct {
	group errgroup.Group
	mu    sync.Mutex
	panic any
}

func newParallel() *parallel {
	p := &parallel{}
	p.group.SetLimit(maxParallel)
	return p
}

// run starts a function, once fewer than maxParallel are running.
func (p *parallel) run(f func()) {
	p.group.Go(func() error {
		defer func() {
			if reason := recover(); reason != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.panic = fmt.Sprintf("%v\n%s", reason, debug.Stack())
			}
		}()
		f()
		return nil
	})
}

// wait returns when all functions have returned, and panics if one of them did.
func (p *parallel) wait() {
	_ = p.group.Wait() // no function returns an error
	if p.panic != nil {
		panic(p.panic)
	}
}
