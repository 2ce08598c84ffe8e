package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// repairLimits are the limits of the median and the 95th percentile, in milliseconds.
type repairLimits struct{ median, p95 float64 }

// drift is an edit or deletion of a child, which the controller must repair.
type drift struct {
	name  string
	child int // index in children
	do    func(ctx context.Context, b *bench, name string) error
	// drifted and repaired report whether a watch event shows the drift and its repair.
	drifted, repaired func(watch.Event) bool
	// restore is the bare client's repair.
	restore func(ctx context.Context, b *bench, want *unstructured.Unstructured) error
	limits  repairLimits
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
		restore:  applyAgain(0),
		limits:   repairLimits{4.5, 6},
	},
	{
		name: "deletion of a Service", child: 1,
		do: func(ctx context.Context, b *bench, name string) error {
			return b.admin.Resource(services).Namespace(b.current).Delete(ctx, name, metav1.DeleteOptions{})
		},
		drifted:  func(e watch.Event) bool { return e.Type == watch.Deleted },
		repaired: func(e watch.Event) bool { return e.Type == watch.Added },
		restore:  applyAgain(1),
		limits:   repairLimits{8, 15},
	},
	{
		name: "replacement of a Service's port", child: 1,
		do: func(ctx context.Context, b *bench, name string) error {
			return b.setPort(ctx, b.admin, name, otherPort)
		},
		drifted: func(e watch.Event) bool {
			return slices.Contains(ports(e.Object.(*unstructured.Unstructured)), otherPort)
		},
		repaired: func(e watch.Event) bool {
			return slices.Equal(ports(e.Object.(*unstructured.Unstructured)), []int64{servicePort})
		},
		restore: func(ctx context.Context, b *bench, want *unstructured.Unstructured) error {
			return b.setPort(ctx, b.bare, want.GetName(), servicePort) // an apply would keep the other port
		},
		limits: repairLimits{10, 25},
	},
}

// otherPort replaces the port of a Service. The port is the key of its entry in the list.
const otherPort = 81

// setPort replaces the first port of a Service by another one.
func (b *bench) setPort(ctx context.Context, client dynamic.Interface, name string, port int64) error {
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/ports/0/port","value":%d}]`, port)
	_, err := client.Resource(services).Namespace(b.current).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("replace the port of a Service: %w", err)
	}
	return nil
}

// ports returns the ports of a Service.
func ports(service *unstructured.Unstructured) []int64 {
	var found []int64
	list, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, port := range list {
		number, _, _ := unstructured.NestedInt64(port.(map[string]any), "port")
		found = append(found, number)
	}
	return found
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
		go func() { done <- b.bareRepair(looping, d, parents, ready) }()
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
		b.add(repairRow(d, ours[i], bare, requests[i]))
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
func repairRow(d drift, ours, bare []float64, requests []auditLine) figure {
	p50, p95 := percentile(ours, 50), percentile(ours, 95)
	return figure{
		What:     fmt.Sprintf("%s repaired, p50 / p95 of %d", d.name, len(ours)),
		Measured: fmt.Sprintf("%.1f / %.1f ms; %s per repair", p50, p95, perObject(tally(requests), float64(len(ours)))),
		Bare:     fmt.Sprintf("%.1f / %.1f ms", percentile(bare, 50), percentile(bare, 95)),
		Bar:      fmt.Sprintf("<= %g / %g ms", d.limits.median, d.limits.p95), Met: p50 <= d.limits.median && p95 <= d.limits.p95,
		Raw: map[string]any{"controller_ms": ours, "bare_ms": bare},
	}
}
