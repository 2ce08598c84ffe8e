package main

import (
	"fmt"
	"slices"
	"time"
)

// comparison is one round of the bare client and the controller.
type comparison struct {
	bare, controller settled
	namespace        string        // of the controller's round
	requests         []auditLine   // of the controller
	used             time.Duration // processor time of the controller
}

// comparisons are the rounds with one number of Instances.
type comparisons []comparison

// each returns the value of each round.
func (d comparisons) each(value func(comparison) float64) []float64 {
	values := make([]float64, len(d))
	for i, round := range d {
		values[i] = value(round)
	}
	return values
}

func (d comparison) bareSeconds() float64       { return d.bare.lastObject.Seconds() }
func (d comparison) controllerSeconds() float64 { return d.controller.lastObject.Seconds() }
func (d comparison) ratio() float64             { return d.controllerSeconds() / d.bareSeconds() }
func (d comparison) bareCPU() float64           { return d.bare.cpu.Seconds() }
func (d comparison) controllerCPU() float64     { return d.controller.cpu.Seconds() }
func (d comparison) bareOwn() float64           { return d.bare.own }
func (d comparison) controllerOwn() float64     { return d.controller.own }

// figures returns the rows of the table for rounds with count Instances. The kinds of
// requests and the controller's own CPU are those of the last round.
func (d comparisons) figures(count int, limit limits) []figure {
	objects := float64(count * len(children))
	last := d[len(d)-1]
	bare, controller, ratios := d.each(comparison.bareSeconds), d.each(comparison.controllerSeconds), d.each(comparison.ratio)
	bareOwn, controllerOwn := d.each(comparison.bareOwn), d.each(comparison.controllerOwn)
	bareCPU, controllerCPU := d.each(comparison.bareCPU), d.each(comparison.controllerCPU)
	bareStatus := d.each(func(d comparison) float64 { return d.bare.lastStatus.Seconds() })
	controllerStatus := d.each(func(d comparison) float64 { return d.controller.lastStatus.Seconds() })
	requests := d.each(func(d comparison) float64 { return float64(len(d.requests)) / objects })
	ratio, most := median(ratios), slices.Max(requests)
	return []figure{
		{
			What: fmt.Sprintf("settle time, %d Instances x 3", count),
			Measured: fmt.Sprintf("%.2f s, %.0f objects/s, ratio %.2f (rounds %s)",
				median(controller), objects/median(controller), ratio, list(ratios)),
			Bare: fmt.Sprintf("%.2f s, %.0f objects/s", median(bare), objects/median(bare)),
			Bar:  fmt.Sprintf("ratio <= %.2f", limit.ratio), Met: ratio <= limit.ratio,
			Raw: map[string]any{
				"controller_seconds": controller, "bare_seconds": bare,
				"controller_last_status_seconds": controllerStatus, "bare_last_status_seconds": bareStatus, "ratio": ratio,
			},
		},
		{
			What: fmt.Sprintf("workers' time outside the API server, %d Instances x 3", count),
			Measured: fmt.Sprintf("%.0f %% (rounds %s); settle ratio if the API server were as fast for both: %.2f",
				100*median(controllerOwn), list(controllerOwn), (1-median(bareOwn))/(1-median(controllerOwn))),
			Bare: fmt.Sprintf("%.0f %% (rounds %s)", 100*median(bareOwn), list(bareOwn)),
			Raw:  map[string]any{"controller_share": controllerOwn, "bare_share": bareOwn},
		},
		{
			What:     fmt.Sprintf("API requests per object, %d Instances x 3", count),
			Measured: fmt.Sprintf("%.3f (rounds %s); last: %s", median(requests), thousandths(requests), perObject(tally(last.requests), objects)),
			Bare:     fmt.Sprintf("%.3f", 4./3),
			Bar:      fmt.Sprintf("<= %.2f in each round", limit.requests), Met: most <= limit.requests,
			Raw: map[string]any{"requests": tally(last.requests), "per_object": requests, "objects": objects},
		},
		{
			What: fmt.Sprintf("CPU of all processes, %d Instances x 3", count),
			Measured: fmt.Sprintf("%.2f s, ratio %.2f; of that the controller %.2f s, %.0f us per object",
				median(controllerCPU), median(controllerCPU)/median(bareCPU), last.used.Seconds(), last.used.Seconds()*1e6/objects),
			Bare: fmt.Sprintf("%.2f s", median(bareCPU)),
			Raw: map[string]any{
				"controller_cpu_seconds": last.used.Seconds(), "all_with_controller_seconds": controllerCPU, "all_with_bare_seconds": bareCPU,
			},
		},
	}
}
