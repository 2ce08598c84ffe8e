package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"akri.sh/akri/internal/backoff"
)

// messagePause is the time between two messages. The agent handles two messages of a
// handler per second, after a burst; the time that a message waits for that is not
// measured.
const messagePause = 550 * time.Millisecond

// messages measures single devices that come and go. The bare client creates and deletes
// a copy of the Instance, each time after the agent.
func (b *bench) messages(ctx context.Context, n *node) error {
	const copied = "local-bare"
	events, err := n.watch(ctx, n.admin, instances, "")
	if err != nil {
		return err
	}
	defer events.Stop()
	var came, bareCame, left, bareLeft []float64
	for range b.Samples {
		devices := n.next(1)
		began := time.Now()
		if err := send(ctx, n.local, devices); err != nil {
			return err
		}
		found, err := awaitEvents(ctx, events, 1, added)
		if err != nil {
			return err
		}
		came = append(came, milliseconds(began))
		for _, step := range []struct {
			change func() error
			seen   func(watch.Event) bool
			times  *[]float64
		}{
			{func() error { return n.bareCopy(ctx, found[0], copied) }, added, &bareCame},
			{func() error { return send(ctx, n.local, nil) }, deleted, &left},
			{func() error { return n.bareDelete(ctx, copied) }, deleted, &bareLeft},
		} {
			backoff.Sleep(ctx, messagePause/2)
			began := time.Now()
			if err := step.change(); err != nil {
				return err
			}
			if _, err := awaitEvents(ctx, events, 1, step.seen); err != nil {
				return err
			}
			*step.times = append(*step.times, milliseconds(began))
		}
		backoff.Sleep(ctx, messagePause/2)
	}
	b.add(
		latencyRow("handler's message until the Instance is visible", came, bareCame, 95, latencyLimit{median: 4, high: 8}),
		latencyRow("device left until its Instance is gone", left, bareLeft, 95, latencyLimit{median: 12, high: 12}),
	)
	return nil
}
