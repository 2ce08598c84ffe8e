package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// limits are those of this part: of the ratio of settle times, and of the requests
// per object.
type limits struct{ ratio, requests float64 }

// manyInstances is the number of Instances from which on the ratio must be lower.
const manyInstances = 1000

// limits returns the limits for a number of Instances.
func (o *options) limits(count int) limits {
	switch {
	case !o.Controllers:
		return limits{ratio: 1.2, requests: 1.35}
	case count >= manyInstances:
		return limits{ratio: 1.02, requests: 1.36}
	}
	return limits{ratio: 1.05, requests: 1.36}
}

// reportDelay is longer than the controller delays a write of a status.
const reportDelay = 12 * time.Second

// settled summarizes the audit log for a batch of Instances.
type settled struct {
	// lastObject and lastStatus are the times since the first Instance was created.
	lastObject, lastStatus time.Duration
	// cpu is the processor time of all processes: API server, etcd, the client and
	// the program that creates the Instances. Other load on the machine affects it
	// less than it affects elapsed time.
	cpu time.Duration
	// own is the share of the workers' time in which the API server served none of
	// their requests, from the first request to the last object or status.
	own float64
}

// awaitSettled follows the log from a mark until each Instance has its three
// objects and a status.
func (b *bench) awaitSettled(ctx context.Context, mark int, namespace string, count int) (settled, error) {
	const timeout = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var began, firstRequest, lastObject, lastStatus time.Time
	var served time.Duration
	objects, statuses := map[string]bool{}, map[string]bool{}
	for next := mark; ; {
		fresh, err := b.log.since(next)
		if err != nil {
			return settled{}, err
		}
		next += len(fresh)
		for _, r := range fresh {
			if r.Namespace != namespace || !isDevice(r.Name) || r.Code < 200 || r.Code > 299 {
				continue
			}
			switch r.Resource {
			case "instances":
				if r.Verb == "create" && (began.IsZero() || r.Done.Before(began)) {
					began = r.Done
				}
			case "instances/status":
				statuses[r.Name] = true
				served += r.Done.Sub(r.Began)
				lastStatus = later(lastStatus, r.Done)
			case "configmaps", "services", "deployments":
				if r.Code == 201 {
					objects[r.Resource+"/"+r.Name] = true
					served += r.Done.Sub(r.Began)
					if firstRequest.IsZero() || r.Began.Before(firstRequest) {
						firstRequest = r.Began
					}
					lastObject = later(lastObject, r.Done)
				}
			}
		}
		if len(objects) == count*len(children) && len(statuses) == count {
			available := workers * later(lastObject, lastStatus).Sub(firstRequest)
			return settled{
				lastObject: lastObject.Sub(began), lastStatus: lastStatus.Sub(began),
				own: 1 - served.Seconds()/available.Seconds(),
			}, nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return settled{}, fmt.Errorf("only %d of %d objects and %d of %d statuses exist: %w",
				len(objects), count*len(children), len(statuses), count, ctx.Err())
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// warmUp creates and removes one Instance, so that connections and watches are
// established.
func (b *bench) warmUp(ctx context.Context, namespace string, create func(first, count int) (settled, error)) error {
	const number = 999_999
	if _, err := create(number, 1); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for _, resource := range append([]schema.GroupVersionResource{instances}, children...) {
		err := b.admin.Resource(resource).Namespace(namespace).Delete(ctx, deviceName(number), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // the garbage collector may be faster
			return fmt.Errorf("warm up: %w", err)
		}
	}
	sleep(ctx, time.Second)
	return b.awaitControlPlane(ctx)
}

// byController creates Instances and waits until the controller has written their
// objects and statuses.
func (b *bench) byController(ctx context.Context, namespace string, first, count int) (settled, error) {
	mark := b.log.mark()
	if err := b.createInstances(ctx, namespace, first, count, func(*unstructured.Unstructured) {}); err != nil {
		return settled{}, err
	}
	return b.awaitSettled(ctx, mark, namespace, count)
}

// byBareClient creates Instances and waits until the bare client has written their
// objects and statuses.
func (b *bench) byBareClient(ctx context.Context, namespace string, first, count int) (settled, error) {
	mark := b.log.mark()
	created := make(chan *unstructured.Unstructured, count)
	done := make(chan error, 1)
	go func() { done <- b.runBareClient(ctx, created) }()
	err := b.createInstances(ctx, namespace, first, count, func(instance *unstructured.Unstructured) { created <- instance })
	close(created)
	if worked := <-done; err == nil {
		err = worked
	}
	if err != nil {
		return settled{}, err
	}
	return b.awaitSettled(ctx, mark, namespace, count)
}

// bareRound measures the bare client in a new namespace. The controller must not
// be running.
func (b *bench) bareRound(ctx context.Context, counts ...int) ([]settled, error) {
	namespace, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	rounds, err := b.measureSteps(ctx, namespace, counts, func(first, count int) (settled, error) {
		return b.byBareClient(ctx, namespace, first, count)
	})
	if err != nil {
		return nil, err
	}
	return rounds, b.clear(ctx, namespace)
}

// allCPU returns the processor time that all participating processes have used.
func (b *bench) allCPU() (time.Duration, error) {
	pids := append([]int{os.Getpid()}, b.servers...)
	if b.running != nil {
		pids = append(pids, b.running.pid())
	}
	var sum time.Duration
	for _, pid := range pids {
		used, err := cpu(pid)
		if err != nil {
			return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
		}
		sum += used
	}
	return sum, nil
}

// measureSteps warms up and then creates Instances in steps of the given counts.
func (b *bench) measureSteps(
	ctx context.Context, namespace string, counts []int, create func(first, count int) (settled, error),
) ([]settled, error) {
	if err := b.warmUp(ctx, namespace, create); err != nil {
		return nil, err
	}
	var rounds []settled
	first := 0
	for _, count := range counts {
		before, err := b.allCPU()
		if err != nil {
			return nil, err
		}
		round, err := create(first, count)
		if err != nil {
			return nil, err
		}
		after, err := b.allCPU()
		if err != nil {
			return nil, err
		}
		round.cpu = after - before
		rounds = append(rounds, round)
		first += count
	}
	return rounds, nil
}

// controllerResult is a round of the controller.
type controllerResult struct {
	namespace string
	steps     []settled     // one for each number of Instances
	requests  []auditLine   // from the first Instance until the controller stops writing
	used      time.Duration // its processor time meanwhile
}

// controllerRound measures a new controller in a new namespace, and keeps both.
func (b *bench) controllerRound(ctx context.Context, counts ...int) (controllerResult, error) {
	namespace, err := b.namespace(ctx)
	if err != nil {
		return controllerResult{}, err
	}
	p, err := b.startController()
	if err != nil {
		return controllerResult{}, err
	}
	mark, before := 0, time.Duration(0)
	calls := 0
	steps, err := b.measureSteps(ctx, namespace, counts, func(first, count int) (settled, error) {
		if calls++; calls == 2 { // the first call is the warm-up
			mark = b.log.mark()
			var err error
			if before, err = cpu(p.pid()); err != nil {
				return settled{}, err
			}
			defer b.profileCPU(ctx, p, fmt.Sprintf("cpu-%d", count))()
		}
		return b.byController(ctx, namespace, first, count)
	})
	if err != nil {
		return controllerResult{}, err
	}
	requests, err := b.log.awaitQuiet(ctx, mark, controllerAgent, reportDelay)
	if err != nil {
		return controllerResult{}, err
	}
	if err := b.awaitControlPlane(ctx); err != nil {
		return controllerResult{}, err
	}
	after, err := cpu(p.pid())
	if err != nil {
		return controllerResult{}, err
	}
	return controllerResult{namespace: namespace, steps: steps, requests: requests, used: after - before}, nil
}

// compare measures the bare client and the controller once. Whichever runs second
// finds the machine a little slower, so their order alternates. In the last round,
// the controller runs second and is left running.
func (b *bench) compare(ctx context.Context, round, count int) (d comparison, err error) {
	runBare := func() error {
		rounds, err := b.bareRound(ctx, count)
		if err == nil {
			d.bare = rounds[0]
		}
		return err
	}
	if err := b.tearDown(ctx); err != nil {
		return d, err
	}
	controllerFirst := (b.Rounds-round)%2 == 0
	if !controllerFirst {
		if err := runBare(); err != nil {
			return d, err
		}
	}
	measured, err := b.controllerRound(ctx, count)
	if err != nil {
		return d, err
	}
	d.namespace, d.controller, d.requests, d.used = measured.namespace, measured.steps[0], measured.requests, measured.used
	b.current, b.currentCount = d.namespace, count
	if controllerFirst {
		if err := b.tearDown(ctx); err != nil {
			return d, err
		}
		err = runBare()
	}
	return d, err
}

// converge compares the controller with the bare client in several rounds. The ratio
// is the median of the rounds' ratios.
func (b *bench) converge(ctx context.Context) error {
	for _, count := range b.Instances {
		var rounds comparisons
		for round := range b.Rounds {
			d, err := b.compare(ctx, round, count)
			if err != nil {
				return err
			}
			rounds = append(rounds, d)
			b.logf("%d Instances, round %d: bare client %.2f s, controller %.2f s (last status %.2f, %.2f); CPU %.2f, %.2f", count, round+1,
				d.bareSeconds(), d.controllerSeconds(), d.bare.lastStatus.Seconds(), d.controller.lastStatus.Seconds(), d.bareCPU(), d.controllerCPU())
		}
		for _, f := range rounds.figures(count, b.limits(count)) {
			b.add(f)
		}
		if err := b.rss(ctx, count); err != nil {
			return err
		}
	}
	return nil
}

// tearDown stops the controller and removes the objects it was measured with.
func (b *bench) tearDown(ctx context.Context) error {
	if err := b.stopController(); err != nil {
		return err
	}
	if b.current == "" {
		return nil
	}
	namespace := b.current
	b.current, b.currentCount = "", 0
	return b.clear(ctx, namespace)
}

// list formats values, separated by commas.
func list(values []float64) string { return join(values, "%.2f") }

// thousandths is list with three decimal places.
func thousandths(values []float64) string { return join(values, "%.3f") }

func join(values []float64, format string) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = fmt.Sprintf(format, value)
	}
	return strings.Join(words, ", ")
}

// perObject formats a tally per object, the most frequent kind of request first.
func perObject(counts map[string]int, objects float64) string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = fmt.Sprintf("%s %.3f", kind, float64(counts[kind])/objects)
	}
	return strings.Join(words, ", ")
}
