package slots_test

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The schedules that TestSchedules runs.
const (
	gateSchedules = 2000
	fullSchedules = 100_000 // with AKRI_FULL=1, as in "make full"
)

var (
	schedules = flag.Int("schedules", gateSchedules, "how many random schedules to run")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
)

// TestSchedules runs nodes that share a device, randomly reorders, delays and loses
// their messages, and checks the invariants after every step. The seeds are fixed.
func TestSchedules(t *testing.T) {
	count := uint64(*schedules)
	if os.Getenv("AKRI_FULL") != "" {
		count = max(count, fullSchedules)
	}
	for seed := *firstSeed; seed < *firstSeed+count; seed++ {
		runSchedule(t, seed)
	}
}

// TestFailedSeeds runs the schedules that ever violated an invariant, which are in
// seeds.txt.
func TestFailedSeeds(t *testing.T) {
	data, err := os.ReadFile("seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("seeds.txt: %v: write a seed, then # and what was wrong", err)
		}
		runSchedule(t, seed)
	}
}

// TestSoak runs schedules for the duration AKRI_SOAK, from the seed AKRI_SEED on, as
// "make soak" does.
func TestSoak(t *testing.T) {
	if os.Getenv("AKRI_SOAK") == "" {
		t.Skip("runs only in make soak")
	}
	duration, err := time.ParseDuration(os.Getenv("AKRI_SOAK"))
	if err != nil {
		t.Fatalf("AKRI_SOAK: %v", err)
	}
	first, err := strconv.ParseUint(os.Getenv("AKRI_SEED"), 10, 64)
	if err != nil {
		t.Fatalf("AKRI_SEED: %v", err)
	}
	seed := first
	for began := time.Now(); time.Since(began) < duration; seed++ {
		runSchedule(t, seed)
	}
	t.Logf("%d schedules, seeds %d to %d", seed-first, first, seed-1)
}

// runSchedule runs one schedule. It ends the test if an invariant is violated.
func runSchedule(t *testing.T, seed uint64) {
	t.Helper()
	w := newWorld(seed)
	w.run(300)
	if len(w.violations) > 0 {
		for _, line := range w.tail(90) {
			t.Log(line)
		}
		t.Fatalf("violation: seed %d: %s\nreplay: go test ./agent/serve/slots -run TestSchedules -seed %d -schedules 1\n"+
			"then add the seed to seeds.txt", seed, w.violations[0], seed)
	}
}
