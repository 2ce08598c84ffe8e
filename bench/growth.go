package main

import (
	"context"
	"fmt"
)

// The parameters and limits for this part.
const (
	growthStep = 500
	maxGrowth  = 0.10
)

// growth compares the first 500 Instances of many with the last 500.
func (b *bench) growth(ctx context.Context) error {
	steps := []int{growthStep, b.Growth - 2*growthStep, growthStep}
	if err := b.replaceCluster(ctx); err != nil {
		return err
	}
	bare, err := b.bareRound(ctx, steps...)
	if err != nil {
		return err
	}
	if err := b.replaceCluster(ctx); err != nil { // deleted objects still slow the API server down
		return err
	}
	round, err := b.controllerRound(ctx, steps...)
	if err != nil {
		return err
	}
	b.current, b.currentCount = round.namespace, b.Growth
	for _, row := range growthRows(b.Growth, bare, round, b.limits(b.Growth).ratio) {
		b.add(row)
	}
	return b.rss(ctx, b.Growth)
}

// growthRows returns the rows for three steps of the bare client and of the controller
// to count Instances.
func growthRows(count int, bare []settled, round controllerResult, limit float64) []figure {
	controller, requests := round.steps, round.requests
	ratio := func(i int) float64 { return controller[i].lastObject.Seconds() / bare[i].lastObject.Seconds() }
	first, last := ratio(0), ratio(2)
	objects := float64(count * len(children))
	return []figure{
		{
			What: fmt.Sprintf("settle time of the first and last %d of %d Instances", growthStep, count),
			Measured: fmt.Sprintf("%.2f s, %.2f s (ratios %.2f, %.2f; of CPU %.2f, %.2f)",
				controller[0].lastObject.Seconds(), controller[2].lastObject.Seconds(), first, last,
				controller[0].cpu.Seconds()/bare[0].cpu.Seconds(), controller[2].cpu.Seconds()/bare[2].cpu.Seconds()),
			Bare: fmt.Sprintf("%.2f s, %.2f s", bare[0].lastObject.Seconds(), bare[2].lastObject.Seconds()),
			Bar:  fmt.Sprintf("ratios <= %.2f, equal +- 10 %%", limit),
			Met:  first <= limit && last <= limit && last/first <= 1+maxGrowth && last/first >= 1-maxGrowth,
			Raw:  map[string]any{"first_ratio": first, "middle_ratio": ratio(1), "last_ratio": last},
		},
		{
			What: fmt.Sprintf("settle time of the %d Instances in between", count-2*growthStep),
			Measured: fmt.Sprintf("%.2f s (ratio %.2f); CPU for all %.1f s; requests for all %.3f per object: %s",
				controller[1].lastObject.Seconds(), ratio(1), round.used.Seconds(), float64(len(requests))/objects,
				perObject(tally(requests), objects)),
			Bare: fmt.Sprintf("%.2f s", bare[1].lastObject.Seconds()),
			Raw:  map[string]any{"requests": tally(requests)},
		},
	}
}
