package deadline

import (
	"testing"
	"time"
)

func TestEarliest(t *testing.T) {
	var never time.Time
	soon, later := time.Unix(1, 0), time.Unix(2, 0)
	for name, test := range map[string]struct {
		reason string
		times  []time.Time
		want   time.Time
	}{
		"none":             {"nothing is due", nil, never},
		"never":            {"zero times are not the earliest", []time.Time{never, later, never}, later},
		"first":            {"the order does not matter", []time.Time{soon, later}, soon},
		"last":             {"the order does not matter", []time.Time{later, soon}, soon},
		"nothing but zero": {"several times that mean never mean never", []time.Time{never, never}, never},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Earliest(test.times...); !got.Equal(test.want) {
				t.Errorf("%s: got %v, want %v", test.reason, got, test.want)
			}
		})
	}
}
