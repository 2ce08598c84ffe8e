package webhook

import (
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// maxParallel limits the requests to the API server that one review has in flight.
const maxParallel = 4

// inParallel calls a function with each number below n, a few at a time. If a call panics, so
// does inParallel, whose caller's handler recovers; otherwise it would crash the process.
func inParallel(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i := range n {
		group.Go(func() (err error) {
			defer func() {
				if reason := recover(); reason != nil {
					err = fmt.Errorf("%v\n%s", reason, debug.Stack())
				}
			}()
			f(i)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		panic(err)
	}
}
