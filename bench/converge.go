package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bars of this part.
const (
	mostRatio    = 1.2
	mostRequests = 1.4
	growthStep   = 500
	mostGrowth   = 0.10
)

// settled is what the audit log says of a number of Instances that were created
// together.
type settled struct {
	// lastObject and lastStatus count from the first Instance's creation.
	lastObject, lastStatus time.Duration
	// cpu is what all processes have used: API server, etcd, the client and the
	// program that creates the Instances. Other load on the machine changes it
	// less than it changes time.
	cpu time.Duration
	// own is the part of the workers' time that none of their requests was in the
	// API server, from the first of them to the last object or status.
	own float64
}

// awaitSettled follows the log from a mark until each of the Instances has its
// three objects and a status.
func (b *bench) awaitSettled(ctx context.Context, mark int, namespace string, count int) (settled, error) {
	const patience = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
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
			if r.Namespace != namespace || r.Code < 200 || r.Code > 299 {
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
			return settled{}, fmt.Errorf("%d of %d objects and %d of %d statuses are there: %w", len(objects), count*len(children), len(statuses), count, ctx.Err())
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// warmUp brings one Instance into being and removes it, so that connections and
// watches are there.
func (b *bench) warmUp(ctx context.Context, namespace string, create func(first, count int) (settled, error)) error {
	const number = 999_999
	if _, err := create(number, 1); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for _, resource := range append([]schema.GroupVersionResource{instances}, children...) {
		if err := b.admin.Resource(resource).Namespace(namespace).Delete(ctx, deviceName(number), metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	sleep(ctx, time.Second)
	return nil
}

// byController creates Instances and lets the controller do the rest.
func (b *bench) byController(ctx context.Context, namespace string, first, count int) (settled, error) {
	mark := b.log.mark()
	if err := b.createInstances(ctx, namespace, first, count, func(*unstructured.Unstructured) {}); err != nil {
		return settled{}, err
	}
	return b.awaitSettled(ctx, mark, namespace, count)
}

// byBareClient creates Instances and does the rest by hand.
func (b *bench) byBareClient(ctx context.Context, namespace string, first, count int) (settled, error) {
	mark := b.log.mark()
	come := make(chan *unstructured.Unstructured, count)
	done := make(chan error, 1)
	go func() { done <- b.workByHand(ctx, come) }()
	err := b.createInstances(ctx, namespace, first, count, func(instance *unstructured.Unstructured) { come <- instance })
	close(come)
	if worked := <-done; err == nil {
		err = worked
	}
	if err != nil {
		return settled{}, err
	}
	return b.awaitSettled(ctx, mark, namespace, count)
}

// bareRound measures the bare client in a namespace of its own. The controller
// must not run.
func (b *bench) bareRound(ctx context.Context, counts ...int) ([]settled, error) {
	namespace, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	rounds, err := b.steps(ctx, namespace, counts, func(first, count int) (settled, error) {
		return b.byBareClient(ctx, namespace, first, count)
	})
	if err != nil {
		return nil, err
	}
	return rounds, b.clear(ctx, namespace)
}

// allCPU is the processor time used so far by all who take part.
func (b *bench) allCPU() (time.Duration, error) {
	pids := append([]int{os.Getpid()}, b.servers...)
	if b.running != nil {
		pids = append(pids, b.running.command.Process.Pid)
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

func (b *bench) steps(ctx context.Context, namespace string, counts []int, create func(first, count int) (settled, error)) ([]settled, error) {
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

// controllerRound measures a fresh controller in a namespace of its own, which
// it leaves as it is, with the controller running. requests are those of the
// controller from the first Instance on, until it is quiet.
func (b *bench) controllerRound(ctx context.Context, counts ...int) (namespace string, rounds []settled, requests []request, used time.Duration, err error) {
	if namespace, err = b.namespace(ctx); err != nil {
		return
	}
	p, err := b.startController()
	if err != nil {
		return
	}
	mark, before := 0, time.Duration(0)
	total := 0
	rounds, err = b.steps(ctx, namespace, counts, func(first, count int) (settled, error) {
		if total += 1; total == 2 { // the first is the warm-up
			mark = b.log.mark()
			var err error
			if before, err = cpu(p.command.Process.Pid); err != nil {
				return settled{}, err
			}
			defer b.profileCPU(ctx, p, fmt.Sprintf("cpu-%d", count))()
		}
		return b.byController(ctx, namespace, first, count)
	})
	if err != nil {
		return
	}
	if requests, err = b.log.quiet(ctx, mark, controllerAgent, 2*time.Second); err != nil {
		return
	}
	after, err := cpu(p.command.Process.Pid)
	return namespace, rounds, requests, after - before, err
}

// duel is one round of both.
type duel struct {
	byHand, byController settled
	namespace            string
	requests             []request
	used                 time.Duration
}

// compete measures bare client and controller once. Who comes second finds the
// machine a little slower, so they take turns in that; the controller is the last
// of all, and is left running.
func (b *bench) compete(ctx context.Context, round, count int) (d duel, err error) {
	byHand := func() error {
		settled, err := b.bareRound(ctx, count)
		if err == nil {
			d.byHand = settled[0]
		}
		return err
	}
	if err := b.leave(ctx); err != nil {
		return d, err
	}
	controllerFirst := (b.Rounds-round)%2 == 0
	if !controllerFirst {
		if err := byHand(); err != nil {
			return d, err
		}
	}
	var byController []settled
	if d.namespace, byController, d.requests, d.used, err = b.controllerRound(ctx, count); err != nil {
		return d, err
	}
	d.byController = byController[0]
	b.current, b.currentCount = d.namespace, count
	if controllerFirst {
		if err := b.leave(ctx); err != nil {
			return d, err
		}
		err = byHand()
	}
	return d, err
}

// converge alternates bare client and controller. The ratio is the median of the
// rounds' ratios.
func (b *bench) converge(ctx context.Context) error {
	for _, count := range b.Instances {
		var bare, ours, ratios, bareStatus, oursStatus, bareCPU, oursCPU, bareOwn, oursOwn []float64
		var requests []request
		var used time.Duration
		for round := range b.Rounds {
			d, err := b.compete(ctx, round, count)
			if err != nil {
				return err
			}
			byHand, byController := d.byHand, d.byController
			requests, used = d.requests, d.used
			bare = append(bare, byHand.lastObject.Seconds())
			ours = append(ours, byController.lastObject.Seconds())
			ratios = append(ratios, byController.lastObject.Seconds()/byHand.lastObject.Seconds())
			bareOwn = append(bareOwn, byHand.own)
			oursOwn = append(oursOwn, byController.own)
			bareCPU = append(bareCPU, byHand.cpu.Seconds())
			oursCPU = append(oursCPU, byController.cpu.Seconds())
			bareStatus = append(bareStatus, byHand.lastStatus.Seconds())
			oursStatus = append(oursStatus, byController.lastStatus.Seconds())
			b.say("%d Instances, round %d: bare client %.2f s, controller %.2f s (last status %.2f, %.2f); CPU %.2f, %.2f", count, round+1,
				byHand.lastObject.Seconds(), byController.lastObject.Seconds(), byHand.lastStatus.Seconds(), byController.lastStatus.Seconds(), byHand.cpu.Seconds(), byController.cpu.Seconds())
		}
		objects := float64(count * len(children))
		ratio := median(ratios)
		b.add(figure{
			What:       fmt.Sprintf("settle time, %d Instances x 3", count),
			Controller: fmt.Sprintf("%.2f s, %.0f objects/s, ratio %.2f (rounds %s)", median(ours), objects/median(ours), ratio, list(ratios)),
			Bare:       fmt.Sprintf("%.2f s, %.0f objects/s", median(bare), objects/median(bare)),
			Bar:        fmt.Sprintf("ratio <= %.1f", mostRatio), Met: ratio <= mostRatio,
			Raw: map[string]any{"controller_seconds": ours, "bare_seconds": bare, "controller_last_status_seconds": oursStatus, "bare_last_status_seconds": bareStatus, "ratio": ratio},
		})
		b.add(figure{
			What: fmt.Sprintf("workers' time outside the API server, %d Instances x 3", count),
			Controller: fmt.Sprintf("%.0f %% (rounds %s); settle ratio if the API server were as fast for both: %.2f", 100*median(oursOwn), list(oursOwn),
				(1-median(bareOwn))/(1-median(oursOwn))),
			Bare: fmt.Sprintf("%.0f %% (rounds %s)", 100*median(bareOwn), list(bareOwn)),
			Raw:  map[string]any{"controller_share": oursOwn, "bare_share": bareOwn},
		})
		each := float64(len(requests)) / objects
		b.add(figure{
			What:       fmt.Sprintf("API requests per object, %d Instances x 3", count),
			Controller: fmt.Sprintf("%.3f: %s", each, perObject(tally(requests), objects)),
			Bare:       fmt.Sprintf("%.3f", 4./3),
			Bar:        fmt.Sprintf("<= %.1f", mostRequests), Met: each <= mostRequests,
			Raw: map[string]any{"requests": tally(requests), "objects": objects},
		})
		b.add(figure{
			What: fmt.Sprintf("CPU of all processes, %d Instances x 3", count),
			Controller: fmt.Sprintf("%.2f s, ratio %.2f; of it the controller's %.2f s, %.0f us per object", median(oursCPU), median(oursCPU)/median(bareCPU),
				used.Seconds(), used.Seconds()*1e6/objects),
			Bare: fmt.Sprintf("%.2f s", median(bareCPU)),
			Raw:  map[string]any{"controller_cpu_seconds": used.Seconds(), "all_with_controller_seconds": oursCPU, "all_with_bare_seconds": bareCPU},
		})
		if err := b.rss(ctx, count); err != nil {
			return err
		}
	}
	return nil
}

// leave stops the controller and removes what it has been measured with.
func (b *bench) leave(ctx context.Context) error {
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

// growth compares the first 500 Instances of many with the last 500.
func (b *bench) growth(ctx context.Context) error {
	steps := []int{growthStep, b.Growth - 2*growthStep, growthStep}
	if err := b.beginAnew(ctx); err != nil {
		return err
	}
	byHand, err := b.bareRound(ctx, steps...)
	if err != nil {
		return err
	}
	if err := b.beginAnew(ctx); err != nil { // the remains of so many objects slow an API server down
		return err
	}
	namespace, byController, requests, used, err := b.controllerRound(ctx, steps...)
	if err != nil {
		return err
	}
	b.current, b.currentCount = namespace, b.Growth
	ratio := func(i int) float64 { return byController[i].lastObject.Seconds() / byHand[i].lastObject.Seconds() }
	first, last := ratio(0), ratio(2)
	b.add(figure{
		What: fmt.Sprintf("settle time of the first and last %d of %d Instances", growthStep, b.Growth),
		Controller: fmt.Sprintf("%.2f s, %.2f s (ratios %.2f, %.2f; of CPU %.2f, %.2f)", byController[0].lastObject.Seconds(), byController[2].lastObject.Seconds(), first, last,
			byController[0].cpu.Seconds()/byHand[0].cpu.Seconds(), byController[2].cpu.Seconds()/byHand[2].cpu.Seconds()),
		Bare: fmt.Sprintf("%.2f s, %.2f s", byHand[0].lastObject.Seconds(), byHand[2].lastObject.Seconds()),
		Bar:  fmt.Sprintf("ratios <= %.1f, equal +- 10 %%", mostRatio),
		Met:  first <= mostRatio && last <= mostRatio && last/first <= 1+mostGrowth && last/first >= 1-mostGrowth,
		Raw:  map[string]any{"first_ratio": first, "middle_ratio": ratio(1), "last_ratio": last},
	})
	objects := float64(b.Growth * len(children))
	b.add(figure{
		What:       fmt.Sprintf("settle time of the %d Instances between", steps[1]),
		Controller: fmt.Sprintf("%.2f s (ratio %.2f); CPU for all %.1f s; requests for all %.3f per object: %s", byController[1].lastObject.Seconds(), ratio(1), used.Seconds(), float64(len(requests))/objects, perObject(tally(requests), objects)),
		Bare:       fmt.Sprintf("%.2f s", byHand[1].lastObject.Seconds()),
		Raw:        map[string]any{"requests": tally(requests)},
	})
	return b.rss(ctx, b.Growth)
}

func list(values []float64) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = fmt.Sprintf("%.2f", value)
	}
	return strings.Join(words, ", ")
}

// perObject is a tally in words, the most frequent first.
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
