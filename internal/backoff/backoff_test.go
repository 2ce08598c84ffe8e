package backoff

import (
	"math"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	for name, test := range map[string]struct {
		reason   string
		failures int
		want     time.Duration
	}{
		"First":    {"the first attempt waits for the initial delay", 0, time.Second},
		"Doubled":  {"each failure doubles the delay", 3, 8 * time.Second},
		"Limit":    {"the delay never exceeds the limit", 9, 5 * time.Minute},
		"Overflow": {"many failures neither overflow nor take long", math.MaxInt, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Delay(time.Second, 5*time.Minute, test.failures); got != test.want {
				t.Errorf("Delay(1s, 5m, %d) = %v, want %v: %s", test.failures, got, test.want, test.reason)
			}
		})
	}
}
