package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ensureController ensures that a controller is running and has applied the objects
// of the last number of Instances.
func (b *bench) ensureController(ctx context.Context) error {
	count := b.Instances[len(b.Instances)-1]
	if b.currentCount >= count && b.running != nil {
		return nil
	}
	if b.currentCount >= count {
		if _, err := b.startController(); err != nil {
			return err
		}
		return b.running.awaitRest(ctx, b.currentCount)
	}
	if err := b.tearDown(ctx); err != nil {
		return err
	}
	round, err := b.controllerRound(ctx, count)
	if err != nil {
		return err
	}
	b.current, b.currentCount = round.namespace, count
	return nil
}

// restart counts the writes of a restarted controller that has nothing to do.
func (b *bench) restart(ctx context.Context) error {
	if err := b.ensureController(ctx); err != nil {
		return err
	}
	if err := b.running.stop(syscall.SIGKILL); err != nil {
		return err
	}
	mark, began := b.log.mark(), time.Now()
	p, err := b.startController()
	if err != nil {
		return err
	}
	if err := p.awaitRest(ctx, b.currentCount); err != nil {
		return err
	}
	took := time.Since(began) - restFor
	requests, err := b.log.awaitQuiet(ctx, mark, controllerAgent, time.Second)
	if err != nil {
		return err
	}
	b.add(restartRow(b.currentCount, took, requests))
	return b.rss(ctx, b.currentCount)
}

// restartRow returns the row for a restart with count Instances: the time until the
// controller is at rest, and its requests.
func restartRow(count int, took time.Duration, requests []auditLine) figure {
	written := writes(requests)
	return figure{
		What:     fmt.Sprintf("writes after a restart with %d objects", count*len(children)),
		Measured: fmt.Sprintf("%d; at rest after %.1f s; all requests: %v", len(written), took.Seconds(), tally(requests)),
		Bare:     fmt.Sprintf("%d if it applied everything again", count*(len(children)+1)),
		Bar:      "0", Met: len(written) == 0,
		Raw: map[string]any{"requests": tally(requests), "writes": tally(written)},
	}
}

// idle counts the requests of a controller that has nothing to do.
func (b *bench) idle(ctx context.Context) error {
	if err := b.ensureController(ctx); err != nil {
		return err
	}
	mark := b.log.mark()
	before, err := cpu(b.running.pid())
	if err != nil {
		return err
	}
	if !sleep(ctx, b.Idle) {
		return ctx.Err()
	}
	after, err := cpu(b.running.pid())
	if err != nil {
		return err
	}
	requests, err := b.log.awaitQuiet(ctx, mark, controllerAgent, 0)
	if err != nil {
		return err
	}
	b.add(idleRow(b.Idle, after-before, requests))
	return nil
}

// idleRow returns the row for the requests and the processor time of a controller that
// has been idle for a time.
func idleRow(idle, used time.Duration, requests []auditLine) figure {
	written := writes(requests)
	return figure{
		What: fmt.Sprintf("writes within %v at rest", idle),
		Measured: fmt.Sprintf("%d; other requests: %d; CPU %.2f %%",
			len(written), len(requests)-len(written), 100*used.Seconds()/idle.Seconds()),
		Bare: "0",
		Bar:  "0", Met: len(written) == 0,
		Raw: map[string]any{"requests": tally(requests), "idle_seconds": idle.Seconds()},
	}
}

// statusWrites is how many changes of a status churn makes.
const statusWrites = 100

// churn counts the requests caused by status changes that the controller can ignore.
func (b *bench) churn(ctx context.Context) error {
	if err := b.ensureController(ctx); err != nil {
		return err
	}
	write := func(i int) error {
		patch := fmt.Sprintf(`{"status":{"collisionCount":%d}}`, i+1)
		_, err := b.admin.Resource(deployments).Namespace(b.current).
			Patch(ctx, deviceName(i%b.currentCount), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("write a status: %w", err)
		}
		return nil
	}
	before, err := b.running.gauges(ctx, reconciles)
	if err != nil {
		return err
	}
	mark := b.log.mark()
	for i := range statusWrites {
		if err := write(i); err != nil {
			return err
		}
	}
	if err := b.running.awaitRest(ctx, 0); err != nil {
		return err
	}
	requests, err := b.log.awaitQuiet(ctx, mark, controllerAgent, time.Second)
	if err != nil {
		return err
	}
	after, err := b.running.gauges(ctx, reconciles)
	if err != nil {
		return err
	}
	b.add(churnRow(after[reconciles]-before[reconciles], requests))
	return nil
}

// churnRow returns the row for the reconciles and the requests after status writes.
func churnRow(passes float64, requests []auditLine) figure {
	return figure{
		What:     fmt.Sprintf("requests caused by %d status writes on Deployments", statusWrites),
		Measured: fmt.Sprintf("%d; reconciles: %.0f", len(requests), passes),
		Bare:     "0",
		Bar:      "0", Met: len(requests) == 0,
		Raw: map[string]any{"requests": tally(requests), "passes": passes},
	}
}
