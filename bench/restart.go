package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// last returns the number of Instances for the parts that need only one.
func (o options) last() int { return o.Instances[len(o.Instances)-1] }

// restart counts the writes of a restarted controller that has nothing to do.
func (b *bench) restart(ctx context.Context) (err error) {
	count := b.last()
	r, err := b.settle(ctx, count, controllerName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.controller.end(syscall.SIGKILL); err != nil {
		return err
	}
	mark, began := r.log.mark(), time.Now()
	if r.controller, err = b.startController(r.plane); err != nil {
		return err
	}
	if err := r.controller.awaitIdle(ctx, count); err != nil {
		return err
	}
	took := time.Since(began) - restFor
	requests, err := r.log.awaitQuiet(ctx, mark, controllerName, reportDelay)
	if err != nil {
		return err
	}
	b.add(restartRow(count, took, requests))
	return b.rest(ctx, r.plane, r.controller, objectsText(count)+", restarted", controllerMemory(count))
}

// restartRow returns the row for a restart: the time until the controller is at rest, and
// its requests.
func restartRow(count int, took time.Duration, requests []auditLine) figure {
	written := writes(requests)
	return figure{
		What:     "writes after a restart, " + objectsText(count),
		Measured: fmt.Sprintf("%d; at rest after %.1f s; all requests: %v", len(written), took.Seconds(), tally(requests)),
		Bare:     fmt.Sprintf("%d if it applied everything again", count*(len(children)+1)),
		Limit:    "0", Met: len(written) == 0,
	}
}

// restFor is how long a controller must reconcile nothing to count as idle.
const restFor = 2 * time.Second

// awaitIdle waits until a controller has made at least count reconciles, and then none for
// restFor.
func (p *program) awaitIdle(ctx context.Context, count int) error {
	const timeout = 3 * time.Minute
	last, since := -1.0, time.Now()
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.exited:
			return false, p.exitError()
		default:
		}
		made, err1 := p.metric(ctx, "controller_runtime_reconcile_total")
		waiting, err2 := p.metric(ctx, "workqueue_depth")
		if err1 != nil || err2 != nil || made != last || made < float64(count) || waiting > 0 { // an error: it does not listen yet
			last, since = made, time.Now()
		}
		return time.Since(since) >= restFor, nil
	})
}
