package clustertest

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Environment variables that determine how much tests do.
const (
	// FullVariable is set in "make full", for tests that take long.
	FullVariable = "AKRI_FULL"
	// SoakVariable is how long each random test runs, in "make soak".
	SoakVariable = "AKRI_SOAK"
	// SeedVariable is the seed of random tests.
	SeedVariable = "AKRI_SEED"
)

// defaultSeed is the seed where none is given: a run repeats the one before.
const defaultSeed = 1

// Full skips a test that takes long, except in "make full".
func Full(t testing.TB) {
	t.Helper()
	if os.Getenv(FullVariable) == "" {
		t.Skip("it takes long: it runs in make full")
	}
}

// Soak returns how long a random test runs, which is fallback outside of "make soak",
// and its seed, which it logs.
func Soak(t testing.TB, fallback time.Duration) (length time.Duration, seed uint64) {
	t.Helper()
	length, seed = fallback, defaultSeed
	if text := os.Getenv(SoakVariable); text != "" {
		parsed, err := time.ParseDuration(text)
		if err != nil || parsed <= 0 {
			t.Fatalf("%s=%q: want a duration such as 30m", SoakVariable, text)
		}
		length = parsed
	}
	if text := os.Getenv(SeedVariable); text != "" {
		parsed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: want a number", SeedVariable, text)
		}
		seed = parsed
	}
	t.Logf("%s=%d", SeedVariable, seed)
	return length, seed
}
