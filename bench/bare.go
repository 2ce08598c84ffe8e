package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// creators is how many connections the Instances are created from.
	creators = 10
	// workers is how many the controller and the bare client work with.
	workers = 4
)

// connect makes a client with a connection of its own and no limit of rate.
func connect(config *rest.Config, agent string) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = agent
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	config.Dial = dialer.DialContext // connections are shared by those of equal dialers
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// createInstances creates Instances number first to first+count-1 from all
// connections, and tells of each as soon as it is there.
func (b *bench) createInstances(ctx context.Context, namespace string, first, count int, created func(*unstructured.Unstructured)) error {
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
	return together(creators, func(worker int) error {
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

// workByHand applies the objects of each Instance that comes, and writes its
// status once: the bare client.
func (b *bench) workByHand(ctx context.Context, come <-chan *unstructured.Unstructured) error {
	return together(workers, func(int) error {
		for instance := range come {
			applied := make([]*unstructured.Unstructured, len(children))
			for i, want := range byHand(instance) {
				answer, err := b.applyByHand(ctx, i, want)
				if err != nil {
					return err
				}
				applied[i] = answer
			}
			_, err := b.bare.Resource(instances).Namespace(instance.GetNamespace()).
				Apply(ctx, instance.GetName(), statusByHand(instance, applied), metav1.ApplyOptions{FieldManager: "bare", Force: true}, "status")
			if err != nil {
				return fmt.Errorf("write a status by hand: %w", err)
			}
		}
		return nil
	})
}

func (b *bench) applyByHand(ctx context.Context, child int, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, err := b.bare.Resource(children[child]).Namespace(want.GetNamespace()).
		Apply(ctx, want.GetName(), want, metav1.ApplyOptions{FieldManager: "bare", Force: true})
	if err != nil {
		return nil, fmt.Errorf("apply by hand: %w", err)
	}
	return answer, nil
}

// repairByHand keeps one child of each Instance as it should be: it applies what
// it sees deleted or with another value. ready is closed when it watches.
func (b *bench) repairByHand(ctx context.Context, namespace string, child int, parents map[string]*unstructured.Unstructured, ready chan<- struct{}) error {
	api := b.bare.Resource(children[child]).Namespace(namespace)
	watch, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=akri"})
	if err != nil {
		return fmt.Errorf("watch by hand: %w", err)
	}
	defer watch.Stop()
	close(ready)
	for event := range watch.ResultChan() {
		seen, ok := event.Object.(*unstructured.Unstructured)
		if ctx.Err() != nil {
			return nil
		}
		if !ok {
			return fmt.Errorf("watch by hand: got %T", event.Object)
		}
		parent := parents[seen.GetName()]
		if parent == nil {
			continue
		}
		want := byHand(parent)[child]
		if event.Type != "DELETED" && device(seen) == device(want) {
			continue
		}
		if _, err := b.applyByHand(ctx, child, want); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// device is the value that the repairs are about; only a ConfigMap has it.
func device(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "device")
	return value
}

// together runs n functions at the same time and returns the first error.
func together(n int, work func(worker int) error) error {
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
