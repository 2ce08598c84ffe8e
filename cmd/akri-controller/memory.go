package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Both commands are idle for hours after bursts of work, on machines that are
// short of memory: the memory that a burst needed is returned soon after it.
const (
	memoryInterval = 2 * time.Second
	minWork        = 16 << 20 // bytes allocated since memory was last returned
	maxIdle        = 2 << 20  // bytes allocated during an interval that counts as idle
)

// leaveHeadroom lowers GOMEMLIMIT by an eighth: the manifests set it to the limit of the
// container, which also counts memory that the Go runtime does not know of.
func leaveHeadroom() {
	if os.Getenv("GOMEMLIMIT") != "" {
		limit := debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(limit - limit/8)
	}
}

// releaseMemory returns unused memory to the operating system after each burst of
// work, until ctx is done.
func releaseMemory(ctx context.Context) error {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	last := readMetric("/gc/heap/allocs:bytes")
	released := last
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			allocated := readMetric("/gc/heap/allocs:bytes")
			if allocated-released > minWork && allocated-last < maxIdle {
				debug.FreeOSMemory()
				released = allocated
			}
			last = allocated
		}
	}
}

// readMetric returns one of the Go runtime's metrics.
func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
