package webhook

import (
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// parallel is how many requests of one admission are under way at a time.
const parallel = 4

// crew runs functions beside each other. A panic in one of them is one of wait,
// where it can be made an answer; else it would end the process.
type crew struct {
	group errgroup.Group
	mutex sync.Mutex
	panic any
}

func newCrew() *crew {
	c := &crew{}
	c.group.SetLimit(parallel)
	return c
}

// run has a function run, when there is room.
func (c *crew) run(do func()) {
	c.group.Go(func() error {
		defer func() {
			if p := recover(); p != nil {
				c.mutex.Lock()
				defer c.mutex.Unlock()
				c.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		do()
		return nil
	})
}

// wait returns when all have ended.
func (c *crew) wait() {
	_ = c.group.Wait() // none returns an error
	if c.panic != nil {
		panic(c.panic)
	}
}
