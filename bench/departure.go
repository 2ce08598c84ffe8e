package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limit for this part: how long the objects of so many Instances may take to go.
const (
	maxDepartures = 300
	maxDeparture  = 5 * time.Second
)

// departed summarizes the deletion of all Instances of a namespace.
type departed struct {
	// took is the time from the first Instance's deletion to the last object's.
	took time.Duration
	// requests are those of the controller and of the garbage collector for the
	// objects.
	requests []auditLine
}

// departure measures how fast the objects of devices go that leave at once, with all
// controllers of Kubernetes running at their default request rates: with our
// controller, and with the garbage collector alone.
func (b *bench) departure(ctx context.Context) error {
	defer func(before bool) { b.Controllers, b.defaultRates = before, false }(b.Controllers)
	b.Controllers, b.defaultRates = true, true
	if err := b.replaceCluster(ctx); err != nil {
		return err
	}
	count := b.Instances[len(b.Instances)-1]
	both, err := b.depart(ctx, count, func() error { return nil })
	if err != nil {
		return err
	}
	alone, err := b.depart(ctx, count, b.stopController)
	if err != nil {
		return err
	}
	b.add(departureRow(count, both, alone))
	return nil
}

// departureRow returns the row for the deletion of count Instances, with our controller
// and with the garbage collector alone.
func departureRow(count int, both, alone departed) figure {
	objects := float64(count * len(children))
	row := figure{
		What: fmt.Sprintf("%d Instances x 3 deleted at once, last object gone", count),
		Measured: fmt.Sprintf("%.2f s, %.3f requests per object with the garbage collector's: %s",
			both.took.Seconds(), float64(len(both.requests))/objects, perObject(tally(both.requests), objects)),
		Bare: fmt.Sprintf("garbage collector alone: %.1f s, %.3f requests: %s",
			alone.took.Seconds(), float64(len(alone.requests))/objects, perObject(tally(alone.requests), objects)),
		Raw: map[string]any{
			"seconds": both.took.Seconds(), "requests": tally(both.requests),
			"collector_seconds": alone.took.Seconds(), "collector_requests": tally(alone.requests),
		},
	}
	if count <= maxDepartures {
		row.Bar = fmt.Sprintf("<= %.0f s, not more requests", maxDeparture.Seconds())
		row.Met = both.took <= maxDeparture && len(both.requests) <= len(alone.requests)
	}
	return row
}

// depart creates Instances in a new namespace, calls before once everything is at
// rest, and deletes all of them.
func (b *bench) depart(ctx context.Context, count int, before func() error) (departed, error) {
	if err := b.tearDown(ctx); err != nil {
		return departed{}, err
	}
	round, err := b.controllerRound(ctx, count)
	if err != nil {
		return departed{}, err
	}
	b.current, b.currentCount = round.namespace, count
	if err := before(); err != nil {
		return departed{}, err
	}
	mark := b.log.mark()
	if err := b.deleteInstances(ctx, round.namespace, count); err != nil {
		return departed{}, err
	}
	took, err := b.awaitDeparture(ctx, mark, round.namespace, count)
	if err != nil {
		return departed{}, err
	}
	if err := b.awaitControlPlane(ctx); err != nil {
		return departed{}, err
	}
	all, err := b.log.since(mark)
	if err != nil {
		return departed{}, err
	}
	return departed{took, slices.DeleteFunc(slices.Clone(all), func(r auditLine) bool { return !r.removes(round.namespace) })}, nil
}

// removes reports whether a request is one for an object of a namespace, by the
// controller or the garbage collector. No other controller reads or deletes these.
func (r auditLine) removes(namespace string) bool {
	return r.Namespace == namespace && isDevice(r.Name) && isChild(r.Resource) && (r.Verb == "get" || r.Verb == "delete") &&
		(r.Agent == controllerAgent || r.Agent == controllerManager)
}

// isChild reports whether the objects of an Instance have a resource.
func isChild(resource string) bool {
	for _, child := range children {
		if child.Resource == resource {
			return true
		}
	}
	return false
}

// deleteInstances deletes the first Instances of a namespace over all connections.
func (b *bench) deleteInstances(ctx context.Context, namespace string, count int) error {
	return inParallel(creators, func(worker int) error {
		api := b.creators[worker].Resource(instances).Namespace(namespace)
		for number := worker; number < count; number += creators {
			if err := api.Delete(ctx, deviceName(number), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete an Instance: %w", err)
			}
		}
		return ctx.Err()
	})
}

// awaitDeparture waits until all objects of a namespace are deleted.
func (b *bench) awaitDeparture(ctx context.Context, mark int, namespace string, count int) (time.Duration, error) {
	const timeout = 5 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var began, last time.Time
	gone := map[string]bool{}
	for next := mark; len(gone) < count*len(children); {
		fresh, err := b.log.since(next)
		if err != nil {
			return 0, err
		}
		next += len(fresh)
		for _, r := range fresh {
			if r.Verb != "delete" || r.Namespace != namespace || r.Code < 200 || r.Code > 299 {
				continue
			}
			if r.Resource == instances.Resource && (began.IsZero() || r.Done.Before(began)) {
				began = r.Done
			}
			if isChild(r.Resource) && isDevice(r.Name) {
				gone[r.Resource+"/"+r.Name] = true
				last = later(last, r.Done)
			}
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return 0, fmt.Errorf("only %d of %d objects are deleted: %w", len(gone), count*len(children), ctx.Err())
		}
	}
	return last.Sub(began), nil
}
