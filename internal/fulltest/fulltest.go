package fulltest

import (
	"os"
	"testing"
)

// Variable is the environment variable that "make full" sets.
const Variable = "AKRI_FULL"

// Enabled reports whether a test should do all that it can.
func Enabled() bool { return os.Getenv(Variable) != "" }

// Only skips the test unless it runs in "make full".
func Only(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("it takes long: it runs in make full")
	}
}
