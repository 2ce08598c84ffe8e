package fulltest

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// The environment variables of random tests: the seed, and how long "make soak" runs them.
const (
	seedVariable = "AKRI_SEED"
	soakVariable = "AKRI_SOAK"
)

// Fresh returns a seed that no earlier commit had: in "make full" it is the date of the
// commit, so that a run can be repeated. Without it, or outside of "make full", the test is
// skipped.
func Fresh(t testing.TB) uint64 {
	t.Helper()
	Only(t)
	if os.Getenv(seedVariable) == "" {
		t.Skip(seedVariable + " is not set: make full sets it to the date of the commit")
	}
	return seed(t)
}

// Soak calls run with a seed, and again with the seed that run returns, for as long as
// "make soak" says. Otherwise the test is skipped.
func Soak(t testing.TB, run func(seed uint64) (next uint64)) {
	t.Helper()
	if os.Getenv(soakVariable) == "" {
		t.Skip("runs only in make soak")
	}
	duration, err := time.ParseDuration(os.Getenv(soakVariable))
	if err != nil {
		t.Fatalf("%s: %v", soakVariable, err)
	}
	next := seed(t)
	for began := time.Now(); time.Since(began) < duration; {
		next = run(next)
	}
}

func seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	return seed
}
