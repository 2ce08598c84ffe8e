package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// workers is the number of workers of the controller and of the bare client.
const workers = 4

// createInstances creates the Instances numbered first to first+count-1 over all
// connections, and sends each as soon as it exists.
func (p *plane) createInstances(ctx context.Context, first, count int, created chan<- *unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, client := range p.creators {
		group.Go(func() error {
			for number := first + i; number < first+count; number += len(p.creators) {
				instance, err := client.Resource(instances).Namespace(namespace).
					Create(ctx, newInstance(deviceName(number)), metav1.CreateOptions{FieldManager: "akri-agent.node1"})
				if err != nil {
					return fmt.Errorf("create an Instance: %w", err)
				}
				created <- instance
			}
			return nil
		})
	}
	return group.Wait()
}

// settleBare applies the objects of each Instance that it receives, and writes the
// Instance's status once.
func (p *plane) settleBare(ctx context.Context, created <-chan *unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			for instance := range created {
				applied := make([]*unstructured.Unstructured, len(children))
				for i, want := range bareObjects(instance) {
					answer, err := p.bareApply(ctx, i, want)
					if err != nil {
						return err
					}
					applied[i] = answer
				}
				_, err := p.bare.Resource(instances).Namespace(namespace).Apply(ctx, instance.GetName(),
					bareStatus(instance, applied), metav1.ApplyOptions{FieldManager: bareAgent, Force: true}, "status")
				if err != nil {
					return fmt.Errorf("bare client: write a status: %w", err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// bareApply applies one object by force, without checking who owns it.
func (p *plane) bareApply(ctx context.Context, child int, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, err := p.bare.Resource(children[child]).Namespace(namespace).
		Apply(ctx, want.GetName(), want, metav1.ApplyOptions{FieldManager: bareAgent, Force: true})
	if err != nil {
		return nil, fmt.Errorf("bare client: apply: %w", err)
	}
	return answer, nil
}

// bareCopy creates an Instance with the content of another one, which no agent watches.
func (p *plane) bareCopy(ctx context.Context, instance *unstructured.Unstructured, name string) error {
	made := instance.DeepCopy()
	made.Object["metadata"] = map[string]any{"name": name}
	_, err := p.bare.Resource(instances).Namespace(namespace).Create(ctx, made, metav1.CreateOptions{FieldManager: bareAgent})
	if err != nil {
		return fmt.Errorf("bare client: create an Instance: %w", err)
	}
	return nil
}

// bareDelete deletes an Instance.
func (p *plane) bareDelete(ctx context.Context, name string) error {
	if err := p.bare.Resource(instances).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("bare client: delete an Instance: %w", err)
	}
	return nil
}

// barePatch sends one JSON Patch for an Instance.
func (p *plane) barePatch(ctx context.Context, name, operations string) error {
	_, err := p.bare.Resource(instances).Namespace(namespace).
		Patch(ctx, name, types.JSONPatchType, []byte(operations), metav1.PatchOptions{FieldManager: bareAgent})
	if err != nil {
		return fmt.Errorf("bare client: patch an Instance: %w", err)
	}
	return nil
}
