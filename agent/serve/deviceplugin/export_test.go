package deviceplugin

import (
	"testing"

	"golang.org/x/time/rate"
)

// UnlimitedLists sends a list for each change until the test ends.
func UnlimitedLists(t *testing.T) {
	before := listRate
	listRate = rate.Inf
	t.Cleanup(func() { listRate = before })
}
