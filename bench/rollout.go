package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The parameters and limits for this part.
const (
	fewInstances = 50
	// fewEdits rollouts over few Instances take about as long as the clock of processes
	// needs to be precise.
	fewEdits       = 10
	maxRolloutCost = 1.1
)

// rolledOut summarizes edits of the templates of a number of Instances.
type rolledOut struct {
	instances, edits int
	requests         []auditLine   // of the controller
	used             time.Duration // its processor time
}

// each returns a value per Instance and edit.
func (r rolledOut) each(value float64) float64 { return value / float64(r.instances*r.edits) }

func (r rolledOut) microseconds() float64 { return r.each(float64(r.used) / float64(time.Microsecond)) }

// rollout compares what a rollout over few Instances costs the controller for each with
// what one over many does.
func (b *bench) rollout(ctx context.Context) error {
	few, err := b.rollOut(ctx, fewInstances, fewEdits)
	if err != nil {
		return err
	}
	many, err := b.rollOut(ctx, b.Growth, 1)
	if err != nil {
		return err
	}
	b.add(rolloutRow(few, many))
	return nil
}

// rolloutRow returns the row for rollouts over few and over many Instances.
func rolloutRow(few, many rolledOut) figure {
	ratio := many.microseconds() / few.microseconds()
	return figure{
		What: fmt.Sprintf("CPU of the controller for each Instance of a rollout over %d and over %d", few.instances, many.instances),
		Measured: fmt.Sprintf("%.0f us, %.0f us, ratio %.2f; requests %.2f, %.2f: %s", few.microseconds(), many.microseconds(), ratio,
			few.each(float64(len(few.requests))), many.each(float64(len(many.requests))),
			perObject(tally(many.requests), float64(many.instances))),
		Bar: "not more (+ 10 %)", Met: ratio <= maxRolloutCost,
		Raw: map[string]any{
			"few_us": few.microseconds(), "many_us": many.microseconds(),
			"few_requests": tally(few.requests), "many_requests": tally(many.requests),
		},
	}
}

// rollOut creates Instances in a new namespace, and edits their templates a number of
// times once everything is at rest. The rollouts are limited to a quarter of them at a time.
func (b *bench) rollOut(ctx context.Context, count, edits int) (r rolledOut, err error) {
	if err := b.tearDown(ctx); err != nil {
		return r, err
	}
	namespace, err := b.emptyNamespace(ctx)
	if err != nil {
		return r, err
	}
	if err := b.configure(ctx, newRolloutConfiguration(namespace)); err != nil {
		return r, err
	}
	p, err := b.startController()
	if err != nil {
		return r, err
	}
	mark := b.log.mark()
	if err := b.createInstances(ctx, namespace, 0, count, func(*unstructured.Unstructured) {}); err != nil {
		return r, err
	}
	if _, err := b.awaitChanges(ctx, mark, namespace, count, reportDelay); err != nil {
		return r, err
	}
	if err := b.awaitControlPlane(ctx); err != nil {
		return r, err
	}
	before, err := cpu(p.pid())
	if err != nil {
		return r, err
	}
	for edit := range edits {
		mark := b.log.mark()
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/instanceBrokerResources/0/data/channel","value":"edit %d"}]`, edit)
		_, err := b.admin.Resource(configurations).Namespace(namespace).
			Patch(ctx, configurationName, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return r, fmt.Errorf("edit the templates: %w", err)
		}
		requests, err := b.awaitChanges(ctx, mark, namespace, count, restFor)
		if err != nil {
			return r, err
		}
		r.requests = append(r.requests, requests...)
	}
	after, err := cpu(p.pid())
	if err != nil {
		return r, err
	}
	r.instances, r.edits, r.used = count, edits, after-before
	if err := b.stopController(); err != nil {
		return r, err
	}
	return r, b.clear(ctx, namespace)
}

// newRolloutConfiguration returns a Configuration whose objects are ready without the
// Deployment controller: an Instance that is not ready does not wait for its turn.
func newRolloutConfiguration(namespace string) *unstructured.Unstructured {
	configuration := newConfiguration(namespace)
	spec := configuration.Object["spec"].(map[string]any)
	spec["instanceBrokerResources"] = spec["instanceBrokerResources"].([]any)[:2]
	spec["rollout"] = map[string]any{"maxUnavailable": "25%"}
	return configuration
}

// awaitChanges waits until the controller has applied the ConfigMap of each Instance, and
// has then sent no write for the given time. It returns its requests.
func (b *bench) awaitChanges(ctx context.Context, mark int, namespace string, count int, quietFor time.Duration) ([]auditLine, error) {
	const timeout = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for changed := 0; ; {
		requests, err := b.log.awaitQuiet(ctx, mark, controllerAgent, quietFor)
		if err != nil {
			return nil, fmt.Errorf("only %d of %d ConfigMaps are applied: %w", changed, count, err)
		}
		if changed = appliedTo(requests, namespace); changed >= count {
			return requests, nil
		}
	}
}

// appliedTo returns how many ConfigMaps of devices of a namespace were applied.
func appliedTo(requests []auditLine, namespace string) int {
	names := map[string]bool{}
	for _, r := range requests {
		if r.Verb == "patch" && r.Resource == configMaps.Resource && r.Namespace == namespace && r.Code < 300 && isDevice(r.Name) {
			names[r.Name] = true
		}
	}
	return len(names)
}
