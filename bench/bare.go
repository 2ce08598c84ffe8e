package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// creators is the number of connections that create Instances.
	creators = 10
	// workers is the number of workers of the controller and of the bare client.
	workers = 4
)

// connect returns a client with its own connection and without a rate limit.
func connect(config *rest.Config, agent string) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = agent
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	config.Dial = dialer.DialContext // clients with the same dialer would share a connection
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return client, nil
}

// createInstances creates the Instances numbered first to first+count-1 over all
// connections, and calls created for each as soon as it exists.
func (b *bench) createInstances(
	ctx context.Context, namespace string, first, count int, created func(*unstructured.Unstructured),
) error {
	numbers := make(chan int)
	go func() {
		defer close(numbers)
		for i := range count {
			select {
			case numbers <- first + i:
			case <-ctx.Done():
				return
			}
		}
	}()
	return inParallel(creators, func(worker int) error {
		for number := range numbers {
			instance, err := b.creators[worker].Resource(instances).Namespace(namespace).
				Create(ctx, newInstance(namespace, deviceName(number)), metav1.CreateOptions{FieldManager: "akri-agent.node1"})
			if err != nil {
				return fmt.Errorf("create an Instance: %w", err)
			}
			created(instance)
		}
		return ctx.Err()
	})
}

// runBareClient applies the objects of each Instance that it receives, and writes the
// Instance's status once.
func (b *bench) runBareClient(ctx context.Context, created <-chan *unstructured.Unstructured) error {
	return inParallel(workers, func(int) error {
		for instance := range created {
			applied := make([]*unstructured.Unstructured, len(children))
			for i, want := range bareObjects(instance) {
				answer, err := b.bareApply(ctx, i, want)
				if err != nil {
					return err
				}
				applied[i] = answer
			}
			_, err := b.bare.Resource(instances).Namespace(instance.GetNamespace()).
				Apply(ctx, instance.GetName(), bareInstanceStatus(instance, applied), metav1.ApplyOptions{FieldManager: "bare", Force: true}, "status")
			if err != nil {
				return fmt.Errorf("bare client: write a status: %w", err)
			}
		}
		return nil
	})
}

// bareApply applies one object by force, without checking who owns it.
func (b *bench) bareApply(ctx context.Context, child int, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, err := b.bare.Resource(children[child]).Namespace(want.GetNamespace()).
		Apply(ctx, want.GetName(), want, metav1.ApplyOptions{FieldManager: "bare", Force: true})
	if err != nil {
		return nil, fmt.Errorf("bare client: apply: %w", err)
	}
	return answer, nil
}

// applyAgain returns a function that applies a child.
func applyAgain(child int) func(context.Context, *bench, *unstructured.Unstructured) error {
	return func(ctx context.Context, b *bench, want *unstructured.Unstructured) error {
		_, err := b.bareApply(ctx, child, want)
		return err
	}
}

// bareRepair watches one child of each Instance and restores it after each drift. It
// closes ready once the watch is established.
func (b *bench) bareRepair(ctx context.Context, d drift, parents map[string]*unstructured.Unstructured, ready chan<- struct{}) error {
	api := b.bare.Resource(children[d.child]).Namespace(b.current)
	events, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: childSelector})
	if err != nil {
		return fmt.Errorf("bare client: watch: %w", err)
	}
	defer events.Stop()
	close(ready)
	return b.followDrifts(ctx, events, d, parents)
}

// followDrifts restores the children whose drifts a watch shows, until it or ctx ends.
func (b *bench) followDrifts(ctx context.Context, events watch.Interface, d drift, parents map[string]*unstructured.Unstructured) error {
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*unstructured.Unstructured)
		if ctx.Err() != nil {
			return nil
		}
		if !ok {
			return fmt.Errorf("bare client: watch: got %T", event.Object)
		}
		parent := parents[seen.GetName()]
		if parent == nil || !d.drifted(event) {
			continue
		}
		if err := d.restore(ctx, b, bareObjects(parent)[d.child]); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// device returns the value that the repairs restore; only a ConfigMap has it.
func device(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "device")
	return value
}

// inParallel calls work n times concurrently and returns the first error.
func inParallel(n int, work func(worker int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = work(i) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
