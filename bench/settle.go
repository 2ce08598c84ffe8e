package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/internal/backoff"
)

// reportDelay is longer than the controller delays a write of a status.
const reportDelay = 12 * time.Second

// settled is how a client has handled a number of Instances.
type settled struct {
	// seconds is the time from the first Instance to the last object.
	seconds float64
	// requests are those of the controller, from the first Instance until it has
	// finished with them, and cpu its processor time meanwhile, in seconds.
	requests []auditLine
	cpu      float64
}

// converge compares the controller with the bare client in several rounds.
func (b *bench) converge(ctx context.Context) error {
	for _, count := range b.Instances {
		results := map[string][]settled{}
		for i := range b.Rounds {
			for _, agent := range []string{bareAgent, controllerName} {
				r, err := b.settle(ctx, count, agent)
				if err != nil {
					return err
				}
				results[agent] = append(results[agent], r.settled)
				b.logf("%d Instances, round %d: %s %.2f s", count, i+1, agent, r.seconds)
				if agent == controllerName && i == b.Rounds-1 {
					b.add(settleRows(count, results[bareAgent], results[controllerName])...)
					err = b.rest(ctx, r.plane, r.controller, objectsText(count), controllerMemory(count))
				}
				if err := errors.Join(err, r.close()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// objectsText describes the objects of so many Instances.
func objectsText(count int) string { return fmt.Sprintf("%d Instances x %d", count, len(children)) }

// round is a control plane on which a client has handled a number of Instances.
type round struct {
	*plane
	settled
	controller *program // nil if the client is the bare client
}

// settle measures a client on a new control plane, which the caller closes.
func (b *bench) settle(ctx context.Context, count int, agent string) (*round, error) {
	p, err := b.startPlane(ctx)
	if err != nil {
		return nil, err
	}
	r := &round{plane: p}
	if agent == bareAgent {
		if err = p.warmUp(ctx, agent); err == nil {
			r.settled, err = p.settle(ctx, 0, count, agent)
		}
	} else {
		err = b.settleController(ctx, r, count)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return r, nil
}

// settleController measures the controller, and leaves it running.
func (b *bench) settleController(ctx context.Context, r *round, count int) error {
	_, err := r.admin.Resource(configurations).Namespace(namespace).Create(ctx, newConfiguration(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Configuration: %w", err)
	}
	if r.controller, err = b.startController(r.plane); err != nil {
		return err
	}
	if err := r.warmUp(ctx, controllerName); err != nil {
		return err
	}
	mark := r.log.mark()
	before, err := r.controller.usage()
	if err != nil {
		return err
	}
	if r.settled, err = r.plane.settle(ctx, 0, count, controllerName); err != nil {
		return err
	}
	if r.requests, err = r.log.awaitQuiet(ctx, mark, controllerName, reportDelay); err != nil {
		return err
	}
	after, err := r.controller.usage()
	r.cpu = after.cpu - before.cpu
	return err
}

// startController starts the controller.
func (b *bench) startController(p *plane) (*program, error) {
	return b.start(p, controllerName, "--leader-elect=false", fmt.Sprintf("--workers=%d", workers), "--health-probe-bind-address=0",
		"--node-grace=0") // the Instances' nodes do not exist
}

// warmUp creates and deletes one Instance, so that connections and watches are
// established.
func (p *plane) warmUp(ctx context.Context, agent string) error {
	const number = 999_999
	if _, err := p.settle(ctx, number, 1, agent); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	err := p.admin.Resource(instances).Namespace(namespace).Delete(ctx, deviceName(number), metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return p.awaitRest(ctx)
}

// settle creates Instances, and waits until their objects and statuses are written, by
// the controller that is running or by the bare client.
func (p *plane) settle(ctx context.Context, first, count int, agent string) (settled, error) {
	mark := p.log.mark()
	created := make(chan *unstructured.Unstructured, count)
	group, inGroup := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(created)
		return p.createInstances(inGroup, first, count, created)
	})
	if agent == bareAgent {
		group.Go(func() error { return p.settleBare(inGroup, created) })
	}
	if err := group.Wait(); err != nil {
		return settled{}, err
	}
	return p.log.awaitSettled(ctx, mark, agent, count)
}

// awaitSettled follows the log from a mark until each Instance has its three objects and
// a status from an agent.
func (l *auditLog) awaitSettled(ctx context.Context, mark int, agent string, count int) (settled, error) {
	const timeout = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var began, last time.Time
	objects, statuses := map[string]bool{}, map[string]bool{}
	for next := mark; ; {
		fresh, err := l.since(next)
		if err != nil {
			return settled{}, err
		}
		next += len(fresh)
		for _, r := range fresh {
			switch {
			case r.Code < 200 || r.Code > 299:
			case r.Agent == creatorsAgent && r.Verb == "create":
				if began.IsZero() || r.Done.Before(began) {
					began = r.Done
				}
			case r.Agent == agent && r.Resource == "instances/status" && r.isWrite():
				statuses[r.Name] = true
			case r.Agent == agent && r.Code == 201:
				objects[r.Resource+"/"+r.Name] = true
				if r.Done.After(last) {
					last = r.Done
				}
			}
		}
		if len(objects) == count*len(children) && len(statuses) == count {
			return settled{seconds: last.Sub(began).Seconds()}, nil
		}
		if !backoff.Sleep(ctx, pollInterval) {
			return settled{}, fmt.Errorf("only %d of %d objects and %d of %d statuses exist: %w",
				len(objects), count*len(children), len(statuses), count, ctx.Err())
		}
	}
}

// maxRequests is the limit of the requests per object in each round.
const maxRequests = 1.36

// maxRatio returns the limit of the ratio of settle times for a number of Instances.
func maxRatio(count int) float64 {
	if count >= 1000 {
		return 1.02
	}
	return 1.05
}

// settleRows returns the rows for rounds of the bare client and of the controller. The
// ratio is the median of the rounds' ratios. The kinds of requests and the controller's
// processor time are those of the last round.
func settleRows(count int, bare, ours []settled) []figure {
	objects := count * len(children)
	var bareSeconds, seconds, ratios, requests []float64
	for i := range ours {
		bareSeconds, seconds = append(bareSeconds, bare[i].seconds), append(seconds, ours[i].seconds)
		ratios = append(ratios, ours[i].seconds/bare[i].seconds)
		requests = append(requests, float64(len(ours[i].requests))/float64(objects))
	}
	last := ours[len(ours)-1]
	return []figure{
		{
			What: "settle time, " + objectsText(count),
			Measured: fmt.Sprintf("%.2f s, %.0f objects/s, ratio %.2f (rounds %.2f)",
				median(seconds), float64(objects)/median(seconds), median(ratios), ratios),
			Bare:  fmt.Sprintf("%.2f s, %.0f objects/s", median(bareSeconds), float64(objects)/median(bareSeconds)),
			Limit: fmt.Sprintf("ratio <= %.2f", maxRatio(count)), Met: median(ratios) <= maxRatio(count),
		},
		{
			What:     "API requests per object, " + objectsText(count),
			Measured: fmt.Sprintf("%.3f in the rounds; last: %s", requests, perObject(last.requests, objects)),
			Bare:     fmt.Sprintf("%.3f", float64(len(children)+1)/float64(len(children))),
			Limit:    fmt.Sprintf("<= %.2f in each round", maxRequests), Met: slices.Max(requests) <= maxRequests,
		},
		{
			What:     "CPU of the controller, " + objectsText(count),
			Measured: fmt.Sprintf("%.2f s, %.0f us per object", last.cpu, 1e6*last.cpu/float64(objects)),
		},
	}
}
