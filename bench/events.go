package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// watch watches the objects of a resource that a label selector matches. The existing
// ones are not in the events.
func (p *plane) watch(
	ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, selector string,
) (watch.Interface, error) {
	api := client.Resource(resource).Namespace(namespace)
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	events, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	return events, nil
}

func added(e watch.Event) bool   { return e.Type == watch.Added }
func deleted(e watch.Event) bool { return e.Type == watch.Deleted }

// of returns a condition for events of the object with a name.
func of(name string, holds func(watch.Event) bool) func(watch.Event) bool {
	return func(e watch.Event) bool { return e.Object.(*unstructured.Unstructured).GetName() == name && holds(e) }
}

// awaitEvents waits for so many events that satisfy a condition, and returns their objects.
func awaitEvents(
	ctx context.Context, events watch.Interface, count int, holds func(watch.Event) bool,
) ([]*unstructured.Unstructured, error) {
	const timeout = time.Minute
	limit := time.After(timeout)
	var found []*unstructured.Unstructured
	for len(found) < count {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return nil, errors.New("the watch was closed")
			}
			seen, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("the watch has failed: %v", event.Object)
			}
			if holds(event) {
				found = append(found, seen)
			}
		case <-limit:
			return nil, fmt.Errorf("only %d of %d expected events came within %v", len(found), count, timeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return found, nil
}
