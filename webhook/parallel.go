package webhook

import (
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// maxParallel limits the requests to the API server that one review has in flight.
const maxParallel = 4

// parallel runs functions concurrently. wait re-panics in the caller, whose handler
// recovers; otherwise a panic would crash the process.
type parallel struct{ group errgroup.Group }

func newParallel() *parallel {
	p := &parallel{}
	p.group.SetLimit(maxParallel)
	return p
}

// run starts a function, once fewer than maxParallel are running.
func (p *parallel) run(f func()) {
	p.group.Go(func() (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("%v\n%s", reason, debug.Stack())
			}
		}()
		f()
		return nil
	})
}

// wait returns when all functions have returned, and panics if one of them did.
func (p *parallel) wait() {
	if err := p.group.Wait(); err != nil {
		panic(err)
	}
}
