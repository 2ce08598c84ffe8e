package nodes

import (
	"testing"
	"time"
)

func TestDefaultOptions(t *testing.T) {
	for given, want := range map[time.Duration]Options{
		0:           {0, 0, 0, 30 * time.Second},
		time.Second: {time.Second, time.Second, time.Second, 30 * time.Second},
		time.Hour:   {time.Hour, 30 * time.Second, 5 * time.Minute, 30 * time.Second},
	} {
		if got := DefaultOptions(given); got != want {
			t.Errorf("%v: got %+v, want %+v", given, got, want)
		}
	}
}
