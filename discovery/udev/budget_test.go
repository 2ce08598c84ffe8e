package udev

import (
	"context"
	"errors"
	"testing"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/internal/budget"
)

// TestMatchesAreCounted checks that a request ends if its devices exceed the memory that
// all requests share.
func TestMatchesAreCounted(t *testing.T) {
	m, found := newMachine(t, "serial.txt"), errors.New("found")
	run := func(bytes int) error {
		return budget.New(bytes).Run(t.Context(), func(ctx context.Context) error {
			request := discovery.Request{Details: rules(`SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4"`)}
			return m.handler().Discover(ctx, request, func([]discovery.Device) error { return found })
		})
	}
	if err := run(2 * matchBytes); !errors.Is(err, found) {
		t.Errorf("one device, with memory for it: %v", err)
	}
	if err := run(matchBytes); !errors.As(err, new(*budget.ExceededError)) {
		t.Errorf("one device, without: %v", err)
	}
}
