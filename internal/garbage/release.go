package garbage

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The programs are idle for hours after bursts of work, on machines that are short of
// memory: the memory that a burst needed is returned soon after it.
const (
	interval = 2 * time.Second
	maxIdle  = 2 << 20 // bytes allocated during an interval that counts as idle
)

// Release returns unused memory to the operating system after each burst of work, until
// ctx is done. A burst allocates at least minWork bytes.
func Release(ctx context.Context, minWork uint64) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := allocated()
	released := last
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			now := allocated()
			if now-released > minWork && now-last < maxIdle {
				debug.FreeOSMemory()
				released = now
			}
			last = now
		}
	}
}

// allocated returns the bytes that the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
