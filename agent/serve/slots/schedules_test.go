package slots_test

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"akri.sh/akri/internal/fulltest"
)

// The schedules that TestSchedules runs.
const (
	gateSchedules = 1000
	fullSchedules = 100_000 // with AKRI_FULL=1, as in "make full"

	// freshSchedules are run in addition to those, with seeds of their own for each commit.
	freshSchedules = 50_000
)

var (
	schedules = flag.Int("schedules", gateSchedules, "how many random schedules to run")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
)

// TestSchedules runs nodes that share devices, with their kubelets and one API server,
// and checks the invariants. Each schedule is a random sequence of Pods, faults and
// delays, in simulated time. The seeds are fixed.
func TestSchedules(t *testing.T) {
	count := uint64(*schedules)
	if fulltest.Enabled() {
		count = max(count, fullSchedules)
	}
	last := *firstSeed + count - 1
	total := checkSchedules(t, *firstSeed, last)
	t.Logf("seeds %d to %d: %+v", *firstSeed, last, total)
	if count >= 1000 && (total.Granted == 0 || total.Groups == 0 || total.Several == 0 || total.Crashes == 0 || total.Forced == 0) {
		t.Errorf("the schedules no longer reach what they should: %+v", total)
	}
	if count >= 1000 {
		total.Checks.demand(t, count)
	}
}

// TestFreshSchedules runs schedules that were not run for an earlier commit, so that the
// machine does not fit the fixed seeds only.
func TestFreshSchedules(t *testing.T) {
	first := fulltest.Fresh(t) * freshSchedules // commits a second apart have no seed in common
	last := first + freshSchedules - 1
	t.Logf("seeds %d to %d: %+v", first, last, checkSchedules(t, first, last))
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
		checkSchedules(t, seed, seed)
	}
}

// TestSoak runs schedules for as long as "make soak" says.
func TestSoak(t *testing.T) {
	const batch = 1000
	var total stats
	next := uint64(0)
	fulltest.Soak(t, func(seed uint64) uint64 {
		total.add(checkSchedules(t, seed, seed+batch-1))
		next = seed + batch
		return next
	})
	t.Logf("schedules up to seed %d: %+v", next-1, total)
}

// checkSchedules runs a range of seeds. It ends the test if an invariant is violated.
func checkSchedules(t *testing.T, first, last uint64) stats {
	t.Helper()
	total, violated := runSchedules(first, last)
	if violated > last {
		return total
	}
	w := newWorld(violated, true) // the same once more, with a log
	w.run()
	for _, line := range w.log[max(0, len(w.log)-1500):] {
		t.Log(line)
	}
	t.Fatalf("violation: seed %d: %s\nreplay: go test ./agent/serve/slots -run TestSchedules -seed %d -schedules 1\n"+
		"then add the seed to seeds.txt", violated, w.violation, violated)
	return total
}
