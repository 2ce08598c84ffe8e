package build

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// TestOneBuildWaitsForAnother checks that one process at a time has a lock, that who waits says so once, and that waiting
// ends with its context.
func TestOneBuildWaitsForAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	unlock, err := Lock(t.Context(), dir, func() { t.Error("waits for a lock that nobody has") })
	if err != nil {
		t.Fatal(err)
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := Lock(ctx, dir, func() { cancel(interrupted) }); !errors.Is(err, interrupted) {
		t.Errorf("while it is locked, and then interrupted: %v", err)
	}
	waits := 0
	second, err := Lock(t.Context(), dir, func() {
		waits++
		unlock()
	})
	if err != nil || waits != 1 {
		t.Fatalf("%v, after %d reports that it waits, want 1", err, waits)
	}
	second()
}
