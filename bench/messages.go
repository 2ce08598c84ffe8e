package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// messagePause is the time between two messages. The agent handles two messages of a
	// handler per second, after a burst; the time that a message waits for that is not
	// measured.
	messagePause = 550 * time.Millisecond
	// bareInstance is the name of the bare client's Instance.
	bareInstance = "local-bare"
)

// latencies are the milliseconds until Instances were visible, and until they were gone.
type latencies struct{ added, deleted []float64 }

// messages measures single devices that come and go. The bare client creates and deletes a
// copy of the first Instance, each time after the agent.
func (a *agentBench) messages(ctx context.Context) error {
	events, err := a.watch(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	var ours, bare latencies
	var copied *unstructured.Unstructured
	for range a.b.Messages {
		devices := a.next(1)
		for _, step := range []struct {
			change func() error
			kind   watch.EventType
			times  *[]float64
		}{
			{func() error { a.local.Set(devices); return nil }, watch.Added, &ours.added},
			{func() error { _, err := a.bareCreate(ctx, copied); return err }, watch.Added, &bare.added},
			{func() error { a.local.Set(nil); return nil }, watch.Deleted, &ours.deleted},
			{func() error { return a.bareDelete(ctx) }, watch.Deleted, &bare.deleted},
		} {
			began := time.Now()
			if err := step.change(); err != nil {
				return err
			}
			if err := awaitEvents(ctx, events, step.kind, 1); err != nil {
				return err
			}
			*step.times = append(*step.times, milliseconds(time.Since(began)))
			if copied == nil {
				if copied, err = a.copyLocal(ctx); err != nil {
					return err
				}
			}
			sleep(ctx, messagePause/2)
		}
	}
	for _, row := range messageRows(ours, bare) {
		a.b.add(row)
	}
	return nil
}

// copyLocal returns a copy of the only Instance, for no node.
func (a *agentBench) copyLocal(ctx context.Context) (*unstructured.Unstructured, error) {
	all, err := a.b.bare.Resource(instances).Namespace(a.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the Instances: %w", err)
	}
	if len(all.Items) != 1 {
		return nil, fmt.Errorf("found %d Instances, want 1", len(all.Items))
	}
	return copyOf(&all.Items[0], bareInstance), nil
}

// copyOf returns an Instance with the content of another one, for no node.
func copyOf(instance *unstructured.Unstructured, name string) *unstructured.Unstructured {
	made := instance.DeepCopy()
	made.Object["metadata"] = map[string]any{"name": name}
	return made
}

func (a *agentBench) bareCreate(ctx context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := a.b.bare.Resource(instances).Namespace(a.namespace).Create(ctx, instance, metav1.CreateOptions{FieldManager: bareAgent})
	if err != nil {
		return nil, fmt.Errorf("bare client: create an Instance: %w", err)
	}
	return made, nil
}

func (a *agentBench) bareDelete(ctx context.Context) error {
	if err := a.b.bare.Resource(instances).Namespace(a.namespace).Delete(ctx, bareInstance, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("bare client: delete an Instance: %w", err)
	}
	return nil
}

// messageRows returns the rows for single devices of the agent and of the bare client.
func messageRows(ours, bare latencies) []figure {
	row := func(what string, ours, bare []float64, maxMedian, maxP95 float64) figure {
		p50, p95 := percentile(ours, 50), percentile(ours, 95)
		return figure{
			What:     fmt.Sprintf("%s, p50 / p95 of %d", what, len(ours)),
			Measured: fmt.Sprintf("%.1f / %.1f ms, ratio of p50 %.2f", p50, p95, p50/percentile(bare, 50)),
			Bare:     fmt.Sprintf("%.1f / %.1f ms", percentile(bare, 50), percentile(bare, 95)),
			Bar:      fmt.Sprintf("<= %.0f / %.0f ms", maxMedian, maxP95), Met: p50 <= maxMedian && p95 <= maxP95,
			Raw: map[string]any{"ms": ours, "bare_ms": bare},
		}
	}
	return []figure{
		row("handler's message until the Instance is visible", ours.added, bare.added, maxMessageMedian, maxMessageP95),
		row("device left until its Instance is gone", ours.deleted, bare.deleted, maxLeaveP95, maxLeaveP95),
	}
}
