package discovery_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"akri.sh/akri/discovery"
)

// lister sends as many devices with a KiB of properties as the details say, and keeps them.
var lister = function(func(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	count, err := strconv.Atoi(strings.TrimSpace(request.Details))
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	var devices []discovery.Device
	for i := range count {
		devices = append(devices, discovery.Device{
			ID: fmt.Sprint(i), Properties: map[string]string{"A": strings.Repeat("x", 512), "B": strings.Repeat("y", 512)},
		})
		if i%100 == 99 || i == count-1 {
			if err := send(devices); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return ctx.Err()
})

// TestRefusedForMemory checks what agents learn of a request that takes too much memory.
func TestRefusedForMemory(t *testing.T) {
	err := discovery.Bound(lister).Discover(t.Context(), discovery.Request{Details: "20000"}, func([]discovery.Device) error { return nil })
	for _, want := range []string{"24 MiB", "all Configurations share", "GOMEMLIMIT"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v lacks %q", err, want)
		}
	}
}
