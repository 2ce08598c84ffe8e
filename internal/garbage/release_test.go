package garbage

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// Memory is returned once after a burst of work, and not without one.
func TestRelease(t *testing.T) {
	const burst = 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only FreeOSMemory collects
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go Release(ctx, burst/2)
		before := collections()
		time.Sleep(10 * interval)
		if count := collections() - before; count > 0 {
			t.Errorf("memory was returned %d times although nothing was allocated", count)
		}
		work(burst)
		time.Sleep(interval)
		if count := collections() - before; count > 0 {
			t.Errorf("memory was returned %d times within the burst", count)
		}
		time.Sleep(10 * interval)
		if count := collections() - before; count == 0 {
			t.Error("memory was not returned after the burst")
		}
		before = collections()
		time.Sleep(10 * interval)
		if count := collections() - before; count > 0 {
			t.Errorf("memory was returned %d more times", count)
		}
	})
}

// work allocates bytes and keeps none of them.
func work(bytes int) {
	for range bytes >> 20 {
		kept = make([]byte, 1<<20)
	}
	kept = nil
}

var kept []byte

// collections returns how often garbage has been collected because the program asked for
// it, as FreeOSMemory does.
func collections() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
