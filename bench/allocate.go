package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/bench/stub"
)

const (
	// slotsPerDevice is the capacity of the devices that are allocated.
	slotsPerDevice = 10
	// maxAllocations is the number of slots.
	maxAllocations = manyDevices * slotsPerDevice
	// maxAllocateRatio limits Allocate at the 99th percentile, compared with one JSON
	// Patch.
	maxAllocateRatio = 1.2
)

// allocate compares Allocate for shared devices, each time of a free slot, with the
// JSON Patch that a bare client would send to claim one. The two alternate. Nobody
// releases a slot meanwhile: the kubelet lists all of them.
func (a *agentBench) allocate(ctx context.Context, handler *stub.Handler) error {
	handler.Set(stub.Devices(manyDevices))
	if err := a.configure(ctx, "shared", slotsPerDevice); err != nil {
		return err
	}
	if err := a.awaitKubelet(ctx, func() bool { return a.kubelet.Offered("shared") >= manyDevices }); err != nil {
		return err
	}
	if _, err := a.b.log.awaitQuiet(ctx, a.b.log.mark(), agentName, quietFor); err != nil {
		return err
	}
	bare, err := a.copyInstances(ctx)
	if err != nil {
		return err
	}
	resources := a.kubelet.Resources()
	names, err := withSlots(resources)
	if err != nil {
		return err
	}
	var ours, theirs []float64
	for i := range a.b.Allocations { // a slot of each device, then the next slot of each
		name := names[i%len(names)]
		began := time.Now()
		if err := a.kubelet.Allocate(ctx, name, resources[name].Healthy[i/len(names)]); err != nil {
			return err
		}
		ours = append(ours, milliseconds(time.Since(began)))
		began = time.Now()
		if err := a.bareClaim(ctx, bare[i%len(bare)], i/len(bare)); err != nil {
			return err
		}
		theirs = append(theirs, milliseconds(time.Since(began)))
	}
	a.b.add(allocateRow(ours, theirs))
	return nil
}

// allocateRow returns the row for the milliseconds of each call of Allocate, and of each
// claim of the bare client.
func allocateRow(ours, theirs []float64) figure {
	ratio := percentile(ours, 99) / percentile(theirs, 99)
	return figure{
		What: fmt.Sprintf("Allocate of a shared device, p50 / p99 of %d", len(ours)),
		Measured: fmt.Sprintf("%.1f / %.1f ms, ratio of p99 %.2f, of p50 %.2f",
			percentile(ours, 50), percentile(ours, 99), ratio, percentile(ours, 50)/percentile(theirs, 50)),
		Bare: fmt.Sprintf("%.1f / %.1f ms", percentile(theirs, 50), percentile(theirs, 99)),
		Bar:  fmt.Sprintf("ratio <= %.1f", maxAllocateRatio), Met: ratio <= maxAllocateRatio,
		Raw: map[string]any{"akri_ms": ours, "bare_ms": theirs},
	}
}

// withSlots returns the names of the resources whose slots are all free. It returns an
// error unless each shared device has one.
func withSlots(resources map[string]stub.Resource) ([]string, error) {
	var names []string
	for name, resource := range resources {
		if len(resource.Healthy) == slotsPerDevice {
			names = append(names, name)
		}
	}
	if len(names) != manyDevices {
		return nil, fmt.Errorf("the kubelet has %d resources with %d slots, want %d", len(names), slotsPerDevice, manyDevices)
	}
	slices.Sort(names)
	return names, nil
}

// checkShared returns an error unless each shared device has an Instance.
func checkShared(found int) error {
	if found != manyDevices {
		return fmt.Errorf("found %d shared Instances, want %d", found, manyDevices)
	}
	return nil
}

// copyInstances creates a copy of each shared Instance that no agent watches.
func (a *agentBench) copyInstances(ctx context.Context) ([]*unstructured.Unstructured, error) {
	selected := metav1.ListOptions{LabelSelector: "akri.sh/configuration=shared"}
	all, err := a.b.bare.Resource(instances).Namespace(a.namespace).List(ctx, selected)
	if err != nil {
		return nil, fmt.Errorf("list the Instances: %w", err)
	}
	if err := checkShared(len(all.Items)); err != nil {
		return nil, err
	}
	var copies []*unstructured.Unstructured
	for i := range all.Items {
		made, err := a.bareCreate(ctx, copyOf(&all.Items[i], fmt.Sprint("shared-copy-", i)))
		if err != nil {
			return nil, err
		}
		copies = append(copies, made)
	}
	return copies, nil
}

// bareClaim claims the slot with a number of a copied Instance.
func (a *agentBench) bareClaim(ctx context.Context, instance *unstructured.Unstructured, slot int) error {
	operations := fmt.Sprintf(`[{"op":"test","path":"/metadata/uid","value":%q},`+
		`{"op":"test","path":"/spec/deviceUsage/%[2]s","value":null},{"op":"add","path":"/spec/deviceUsage/%[2]s","value":"bench"}]`,
		instance.GetUID(), fmt.Sprintf("%s-%d", instance.GetName(), slot))
	_, err := a.b.bare.Resource(instances).Namespace(a.namespace).
		Patch(ctx, instance.GetName(), types.JSONPatchType, []byte(operations), metav1.PatchOptions{FieldManager: bareAgent})
	if err != nil {
		return fmt.Errorf("bare client: claim a slot: %w", err)
	}
	return nil
}
