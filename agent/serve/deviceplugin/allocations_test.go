package deviceplugin

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAllocations(t *testing.T) {
	// calls are the beginnings and ends of calls, after the beginning of the wait.
	type call struct{ begin, end time.Duration }
	const ms = time.Millisecond
	tests := map[string]struct {
		calls []call
		want  time.Duration
	}{
		"no call":                          {nil, 0},
		"a call that has ended long ago":   {[]call{{-500 * ms, -20 * ms}}, 0},
		"a call that has just ended":       {[]call{{-30 * ms, -5 * ms}}, 15 * ms},
		"a call in progress":               {[]call{{-30 * ms, 40 * ms}}, 60 * ms},
		"the calls of a Pod's containers":  {[]call{{-30 * ms, 40 * ms}, {41 * ms, 80 * ms}, {99 * ms, 100 * ms}}, 120 * ms},
		"calls of two resources":           {[]call{{-30 * ms, 40 * ms}, {-20 * ms, 90 * ms}}, 110 * ms},
		"a call that waits for a list":     {[]call{{-30 * ms, 2000 * ms}}, maxListDelay},
		"a node that never stops to admit": {[]call{{0, 90 * ms}, {91 * ms, 180 * ms}, {181 * ms, 300 * ms}}, maxListDelay},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const before = time.Second
				var a allocations
				for _, c := range test.calls {
					time.AfterFunc(before+c.begin, a.begin)
					time.AfterFunc(before+c.end, a.end)
				}
				time.Sleep(before)
				synctest.Wait()
				start := time.Now()
				a.wait(t.Context())
				if got := time.Since(start); got != test.want {
					t.Errorf("waited %s, want %s", got, test.want)
				}
				time.Sleep(before * 3) // the rest of the calls
			})
		})
	}
}
