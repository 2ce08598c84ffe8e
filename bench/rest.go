package main

import (
	"context"
	"fmt"
	"time"

	"akri.sh/akri/internal/backoff"
)

// controllerMemory returns the limit of the controller's memory with a number of Instances,
// in MB, or 0 if there is none.
func controllerMemory(count int) float64 {
	switch {
	case count <= 300:
		return 40
	case count == maxInstances:
		return 80
	}
	return 0
}

// quietFor is how long a program must have written nothing to count as at rest.
const quietFor = 3 * time.Second

// rest observes a program that has nothing to do: its requests, its processor time and
// then its memory, which it has returned meanwhile. The limit of the memory is in MB; 0 is none.
func (b *bench) rest(ctx context.Context, p *plane, observed *program, state string, maxMemory float64) error {
	if _, err := p.log.awaitQuiet(ctx, p.log.mark(), observed.name, quietFor); err != nil {
		return err
	}
	mark := p.log.mark()
	before, err := observed.usage()
	if err != nil {
		return err
	}
	if !backoff.Sleep(ctx, b.Idle) {
		return ctx.Err()
	}
	after, err := observed.usage()
	if err != nil {
		return err
	}
	requests, err := p.log.awaitQuiet(ctx, mark, observed.name, 0)
	if err != nil {
		return err
	}
	heap, err := observed.metric(ctx, "go_memstats_heap_inuse_bytes")
	if err != nil {
		return err
	}
	name := observed.name + ", " + state
	b.add(restRow(name, b.Idle, after.cpu-before.cpu, requests), memoryRow(name, after, heap/1e6, maxMemory))
	return nil
}

// restRow returns the row for the requests and the seconds of processor time of a program
// at rest.
func restRow(name string, idle time.Duration, cpu float64, requests []auditLine) figure {
	busy := 0
	for _, r := range requests {
		if r.isWrite() || r.Verb == "list" {
			busy++
		}
	}
	return figure{
		What:     fmt.Sprintf("writes and lists within %v at rest: %s", idle, name),
		Measured: fmt.Sprintf("%d; other requests: %d; CPU %.2f %% of a core", busy, len(requests)-busy, 100*cpu/idle.Seconds()),
		Bare:     "0",
		Limit:    "0", Met: busy == 0,
	}
}

// memoryRow returns the row for the memory of a program, in MB.
func memoryRow(name string, used usage, heap, limit float64) figure {
	row := figure{
		What: "RSS: " + name,
		Measured: fmt.Sprintf("%.1f MB, including %.1f MB of file pages; peak %.1f MB, heap in use %.1f MB",
			used.memory, used.file, used.peak, heap),
	}
	if limit > 0 {
		row.Limit, row.Met = fmt.Sprintf("<= %.0f MB", limit), used.memory <= limit
	}
	return row
}
