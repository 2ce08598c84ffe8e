package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A controller that has made many objects rests for hours, on machines that are
// short of memory: what the work took is given back soon after.
const (
	lookEvery = 2 * time.Second
	work      = 16 << 20 // bytes allocated since memory was given back last
	calm      = 2 << 20  // bytes allocated between two looks
	large     = 32 << 20 // bytes in use from which on garbage is collected twice as often
)

// giveBack returns unused memory to the operating system whenever work is done,
// and keeps a large heap from doubling, until ctx ends. GOGC, if set, rules.
func giveBack(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	last := read("/gc/heap/allocs:bytes")
	given, frugal := last, os.Getenv("GOGC") != ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if !frugal && read("/gc/heap/live:bytes") > large {
				debug.SetGCPercent(50)
				frugal = true
			}
			now := read("/gc/heap/allocs:bytes")
			if now-given > work && now-last < calm {
				debug.FreeOSMemory()
				given = now
			}
			last = now
		}
	}
}

// read is one of the Go runtime's metrics.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
