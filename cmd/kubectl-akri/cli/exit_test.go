package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

func TestExitCode(t *testing.T) {
	cause := errors.New("x")
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"Success":      {nil, 0},
		"AnyError":     {cause, 1},
		"Failed":       {Failed(cause), 2},
		"WrappedError": {fmt.Errorf("y: %w", Failed(cause)), 2},
		"Usage":        {Usage(&cobra.Command{Use: "tree"}, cause), 2},
		"Exit":         {Exit(3), 3},
	} {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("%s: ExitCode(%v) = %d, want %d", name, test.err, got, test.want)
		}
	}
	if !errors.Is(Failed(cause), cause) {
		t.Error("Failed hides its cause")
	}
}
