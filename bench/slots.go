package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/kubelettest"
)

// podTime is how long Pods run: for two seconds after an Allocate, agents do not take a
// missing ID for a free slot.
const podTime = 3 * time.Second

// What the bare client does with a slot.
const (
	claim = `[{"op":"test","path":%[1]q,"value":null},{"op":"add","path":%[1]q,"value":"bench"}]`
	free  = `[{"op":"test","path":%[1]q,"value":"bench"},{"op":"remove","path":%[1]q}]`
)

// times are the milliseconds of claims and of releases, of the agent and of the bare client.
type times struct{ claimed, bareClaimed, freed, bareFreed []float64 }

// slots measures Pods that get and return the only slots of shared devices. The bare client
// claims and frees the slots of copied Instances with one JSON Patch each, each time after
// the agent.
func (b *bench) slots(ctx context.Context, n *node) error {
	const devices = 10
	if err := n.configure(ctx, "shared"); err != nil {
		return err
	}
	found, err := n.find(ctx, n.shared, devices)
	if err != nil {
		return err
	}
	events, err := n.watch(ctx, n.admin, instances, "")
	if err != nil {
		return err
	}
	defer events.Stop()
	var copies []string
	for i, instance := range found {
		copies = append(copies, fmt.Sprintf("shared-bare%d", i))
		if err := n.bareCopy(ctx, instance, copies[i]); err != nil {
			return err
		}
	}
	var t times
	for len(t.freed) < b.Samples {
		if err := n.useSlots(ctx, events, found, copies, &t); err != nil {
			return err
		}
	}
	b.add(
		latencyRow("Allocate of a shared device", t.claimed, t.bareClaimed, 99, latencyLimit{ratio: 1.2}),
		latencyRow("end of a Pod until its slot is free", t.freed, t.bareFreed, 95, latencyLimit{}),
	)
	return nil
}

// useSlots runs a Pod with each device, and measures its begin and its end.
func (n *node) useSlots(ctx context.Context, events watch.Interface, found []*unstructured.Unstructured, copies []string, t *times) error {
	pods := make([]*corev1.Pod, len(found))
	for i, instance := range found {
		pods[i] = kubelettest.Pod(fmt.Sprintf("pod-%d", len(t.claimed)), "akri.sh/"+instance.GetName(), 1)
		n.kubelet.Create(pods[i])
		began := time.Now()
		if err := n.kubelet.Admit(pods[i]); err != nil {
			return fmt.Errorf("admit a Pod: %w", err)
		}
		t.claimed = append(t.claimed, milliseconds(began))
		began = time.Now()
		if err := n.barePatch(ctx, copies[i], slotPatch(claim, copies[i])); err != nil {
			return err
		}
		t.bareClaimed = append(t.bareClaimed, milliseconds(began))
		for _, name := range []string{instance.GetName(), copies[i]} {
			if _, err := awaitEvents(ctx, events, 1, of(name, isUsed)); err != nil {
				return err
			}
		}
	}
	backoff.Sleep(ctx, podTime)
	for i, instance := range found {
		began := time.Now()
		n.kubelet.End(pods[i])
		if _, err := awaitEvents(ctx, events, 1, of(instance.GetName(), isFree)); err != nil {
			return err
		}
		t.freed = append(t.freed, milliseconds(began))
		n.kubelet.Remove(pods[i])
		began = time.Now()
		if err := n.barePatch(ctx, copies[i], slotPatch(free, copies[i])); err != nil {
			return err
		}
		if _, err := awaitEvents(ctx, events, 1, of(copies[i], isFree)); err != nil {
			return err
		}
		t.bareFreed = append(t.bareFreed, milliseconds(began))
	}
	return nil
}

// slotPatch returns a JSON Patch with two operations on the slot of a copy.
func slotPatch(operations, name string) string {
	return fmt.Sprintf(operations, "/spec/deviceUsage/"+name+"-0")
}

// isUsed reports whether a slot of the Instance of an event is in use.
func isUsed(e watch.Event) bool {
	used, _, _ := unstructured.NestedStringMap(e.Object.(*unstructured.Unstructured).Object, "spec", "deviceUsage")
	for _, owner := range used {
		if owner != "" {
			return true
		}
	}
	return false
}

func isFree(e watch.Event) bool { return !isUsed(e) }
