package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"akri.sh/akri/internal/backoff"
)

// drift is an edit or deletion of a child, which the controller must repair.
type drift struct {
	name  string
	child int // index in children
	do    func(ctx context.Context, p *plane, name string) error
	// drifted and repaired report whether a watch event shows the drift and its repair.
	drifted, repaired func(watch.Event) bool
	limit             latencyLimit
}

var drifts = []drift{
	{
		name: "edit of a ConfigMap", child: 0,
		do: func(ctx context.Context, p *plane, name string) error {
			_, err := p.admin.Resource(configMaps).Namespace(namespace).
				Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"device":"damaged"}}`), metav1.PatchOptions{})
			return err
		},
		drifted:  func(e watch.Event) bool { return device(e) == "damaged" },
		repaired: func(e watch.Event) bool { return device(e) != "damaged" },
		limit:    latencyLimit{median: 4.5, high: 6},
	},
	{
		name: "deletion of a Service", child: 1,
		do: func(ctx context.Context, p *plane, name string) error {
			return p.admin.Resource(services).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		},
		drifted:  func(e watch.Event) bool { return e.Type == watch.Deleted },
		repaired: func(e watch.Event) bool { return e.Type == watch.Added },
		limit:    latencyLimit{median: 8, high: 15},
	},
}

// device returns what the ConfigMap of an event says.
func device(e watch.Event) string {
	value, _, _ := unstructured.NestedString(e.Object.(*unstructured.Unstructured).Object, "data", "device")
	return value
}

// repair measures how long edits and deletions of children last, as seen by a watch, with
// the controller and then with the bare client.
func (b *bench) repair(ctx context.Context) (err error) {
	count := b.last()
	r, err := b.settle(ctx, count, controllerName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	ours := make([][]float64, len(drifts))
	requests := make([][]auditLine, len(drifts))
	for i, d := range drifts {
		mark := r.log.mark()
		if ours[i], err = r.repairTimes(ctx, d, b.Samples, count); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if requests[i], err = r.log.awaitQuiet(ctx, mark, controllerName, reportDelay); err != nil {
			return err
		}
	}
	if err := r.controller.end(syscall.SIGTERM); err != nil {
		return err
	}
	for i, d := range drifts {
		bare, err := r.bareRepairTimes(ctx, d, b.Samples, count)
		if err != nil {
			return fmt.Errorf("%s, bare client: %w", d.name, err)
		}
		row := latencyRow(d.name+" repaired", ours[i], bare, 95, d.limit)
		row.Measured += "; requests per repair: " + perObject(requests[i], b.Samples)
		b.add(row)
	}
	return nil
}

// bareRepairTimes is repairTimes with a bare client that only repairs.
func (p *plane) bareRepairTimes(ctx context.Context, d drift, samples, count int) ([]float64, error) {
	all, err := p.admin.Resource(instances).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the Instances: %w", err)
	}
	wanted := map[string]*unstructured.Unstructured{}
	for i := range all.Items {
		wanted[all.Items[i].GetName()] = bareObjects(&all.Items[i])[d.child]
	}
	events, err := p.watch(ctx, p.bare, children[d.child], childSelector)
	if err != nil {
		return nil, err
	}
	repaired := make(chan error, 1)
	go func() { repaired <- p.bareRepair(ctx, events, d, wanted) }()
	took, err := p.repairTimes(ctx, d, samples, count)
	events.Stop()
	return took, errors.Join(<-repaired, err)
}

// bareRepair applies each object again whose drift a watch shows, until the watch ends.
func (p *plane) bareRepair(ctx context.Context, events watch.Interface, d drift, wanted map[string]*unstructured.Unstructured) error {
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("watch: got %T", event.Object)
		}
		want := wanted[seen.GetName()]
		if want == nil || !d.drifted(event) {
			continue
		}
		if _, err := p.bareApply(ctx, d.child, want); err != nil {
			return err
		}
	}
	return nil
}

// repairTimes edits or deletes one child at a time, a different one each time while there
// are enough, and returns how many milliseconds each repair took.
func (p *plane) repairTimes(ctx context.Context, d drift, samples, count int) ([]float64, error) {
	events, err := p.watch(ctx, p.admin, children[d.child], childSelector)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	var took []float64
	for i := range samples {
		name := deviceName(i % count)
		if err := d.do(ctx, p, name); err != nil {
			return nil, err
		}
		if _, err := awaitEvents(ctx, events, 1, of(name, d.drifted)); err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := awaitEvents(ctx, events, 1, of(name, d.repaired)); err != nil {
			return nil, err
		}
		took = append(took, milliseconds(began))
		backoff.Sleep(ctx, 10*time.Millisecond) // let the controller finish its other work
	}
	return took, nil
}
