package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// The limits for this part, in milliseconds.
const (
	maxRepairMedian = 10
	maxRepairP95    = 25
)

// drift is an edit or deletion of a child, which the controller must repair.
type drift struct {
	name  string
	child int // index in children
	do    func(ctx context.Context, b *bench, name string) error
	// drifted and repaired report whether a watch event shows the drift and its repair.
	drifted, repaired func(watch.Event) bool
}

var drifts = []drift{
	{
		name: "edit of a ConfigMap", child: 0,
		do: func(ctx context.Context, b *bench, name string) error {
			_, err := b.admin.Resource(configMaps).Namespace(b.current).
				Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"device":"damaged"}}`), metav1.PatchOptions{})
			return err
		},
		drifted:  func(e watch.Event) bool { return device(e.Object.(*unstructured.Unstructured)) == "damaged" },
		repaired: func(e watch.Event) bool { return device(e.Object.(*unstructured.Unstructured)) != "damaged" },
	},
	{
		name: "deletion of a Service", child: 1,
		do: func(ctx context.Context, b *bench, name string) error {
			return b.admin.Resource(services).Namespace(b.current).Delete(ctx, name, metav1.DeleteOptions{})
		},
		drifted:  func(e watch.Event) bool { return e.Type == watch.Deleted },
		repaired: func(e watch.Event) bool { return e.Type == watch.Added },
	},
}

// repair measures how long edits and deletions of children last, as seen by a watch.
func (b *bench) repair(ctx context.Context) error {
	if err := b.ensureController(ctx); err != nil {
		return err
	}
	ours := make([][]float64, len(drifts))
	requests := make([][]auditLine, len(drifts))
	for i, d := range drifts {
		mark := b.log.mark()
		var err error
		if ours[i], err = b.repairTimes(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if requests[i], err = b.log.awaitQuiet(ctx, mark, controllerAgent, time.Second); err != nil {
			return err
		}
	}

	// Measure the same for the bare client, which only repairs.
	if err := b.stopController(); err != nil {
		return err
	}
	parents := map[string]*unstructured.Unstructured{}
	all, err := b.admin.Resource(instances).Namespace(b.current).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Instances: %w", err)
	}
	for i := range all.Items {
		parents[all.Items[i].GetName()] = &all.Items[i]
	}
	for i, d := range drifts {
		looping, cancel := context.WithCancel(ctx)
		ready, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- b.bareRepair(looping, b.current, d.child, parents, ready) }()
		select {
		case <-ready:
		case err := <-done:
			cancel()
			return err
		}
		sleep(ctx, 2*time.Second) // the watch starts with all existing objects
		bare, err := b.repairTimes(ctx, d)
		cancel()
		if looped := <-done; err == nil {
			err = looped
		}
		if err != nil {
			return fmt.Errorf("%s, bare client: %w", d.name, err)
		}
		b.add(repairRow(d.name, ours[i], bare, requests[i]))
	}
	// The bare client now owns the objects' fields, so later parts start with new objects.
	return b.tearDown(ctx)
}

// repairTimes edits or deletes one child at a time, a different one each time while
// there are enough, and returns how long each repair took, in milliseconds.
func (b *bench) repairTimes(ctx context.Context, d drift) ([]float64, error) {
	events, err := b.admin.Resource(children[d.child]).Namespace(b.current).
		Watch(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=akri"})
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	defer events.Stop()
	var took []float64
	for i := range b.Repairs {
		name := deviceName(i % b.currentCount)
		if err := d.do(ctx, b, name); err != nil {
			return nil, err
		}
		repaired, err := awaitRepair(ctx, events, d, name)
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(repaired))
		sleep(ctx, 10*time.Millisecond) // let the controller finish its other work
	}
	return took, nil
}

// awaitRepair waits until a watch has shown a drift of the child with a name and then
// its repair, and returns the time between the two.
func awaitRepair(ctx context.Context, events watch.Interface, d drift, name string) (time.Duration, error) {
	const timeout = 30 * time.Second
	var began time.Time
	limit := time.After(timeout)
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return 0, errors.New("the watch was closed")
			}
			now := time.Now()
			o, ok := event.Object.(*unstructured.Unstructured)
			if !ok || o.GetName() != name {
				continue
			}
			switch {
			case began.IsZero() && d.drifted(event):
				began = now
			case !began.IsZero() && d.repaired(event):
				return now.Sub(began), nil
			}
		case <-limit:
			return 0, fmt.Errorf("%s was not repaired within %v", name, timeout)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// repairRow returns the row of a drift: the milliseconds until each repair, of the
// controller with its requests, and of the bare client.
func repairRow(name string, ours, bare []float64, requests []auditLine) figure {
	p50, p95 := percentile(ours, 50), percentile(ours, 95)
	return figure{
		What:     fmt.Sprintf("%s repaired, p50 / p95 of %d", name, len(ours)),
		Measured: fmt.Sprintf("%.1f / %.1f ms; %s per repair", p50, p95, perObject(tally(requests), float64(len(ours)))),
		Bare:     fmt.Sprintf("%.1f / %.1f ms", percentile(bare, 50), percentile(bare, 95)),
		Bar:      fmt.Sprintf("<= %d / %d ms", maxRepairMedian, maxRepairP95), Met: p50 <= maxRepairMedian && p95 <= maxRepairP95,
		Raw: map[string]any{"controller_ms": ours, "bare_ms": bare},
	}
}
