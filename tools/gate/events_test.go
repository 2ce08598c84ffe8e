package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readFile returns the results in a file of testdata. The files are what gotestsum
// wrote about small packages, when it repeated tests as the gate lets it do.
func readFile(t *testing.T, name string) *results {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := newResults()
	if err := r.read(name, file); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		want  string // the name of the failure
		why   string // its first lines, joined by |
		flaky bool
	}{
		"good":      {},
		"assertion": {want: "sample/assertion.TestTable/bad", why: "x_test.go:3: got 1, want 2"},
		"race":      {want: "sample/race.TestRace", why: "WARNING: DATA RACE|Read at 0x00c000094198 by goroutine 10:"},
		"crash":     {want: "sample/crash.TestCrash", why: "panic: assignment to entry in nil map [recovered, repanicked]"},
		"broken":    {want: "sample/broken", why: "broken/x_test.go:3:33: undefined: undefinedFunction"},
		"flaky":     {want: "sample/flaky.TestSometimes/case", why: "x_test.go:3: too slow", flaky: true},
		// Gotestsum itself ends with success in these two.
		"nameless":  {want: "sample/nameless", why: "a goroutine leaked"},
		"violation": {want: "sample/violation.TestModel", why: "x_test.go:3: violation: seed 7: I2: slot 0 is used twice"},
		// The subtest hangs; TestHang waits for it.
		"hang": {want: "sample/hang.TestHang/inner", why: "panic: test timed out after 3s|running tests:|TestHang (3s)|TestHang/inner (3s)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := readFile(t, name).failures()
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("failures are %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].name != test.want || got[0].flaky != test.flaky {
				t.Fatalf("failures are %v, want %s, flaky: %v", got, test.want, test.flaky)
			}
			var why []string
			for _, line := range got[0].why {
				why = append(why, strings.TrimSpace(line))
			}
			if want := strings.Split(test.why, "|"); len(why) < len(want) || !slices.Equal(why[:len(want)], want) {
				t.Errorf("explained by %q, want %q", why, want)
			}
		})
	}
}

// TestSamePackageTwice checks that a test that fails in one target and passes in
// another is not taken for a flaky one.
func TestSamePackageTwice(t *testing.T) {
	r := newResults()
	for file, action := range map[string]string{"test.json": "fail", "full.json": "pass"} {
		r.add(file, event{Action: "run", Package: "p", Test: "TestX"})
		r.add(file, event{Action: action, Package: "p", Test: "TestX"})
		r.add(file, event{Action: action, Package: "p"})
	}
	if got := r.failures(); len(got) != 1 || got[0].flaky {
		t.Errorf("failures are %v", got)
	}
}

func TestNotAnEvent(t *testing.T) {
	err := newResults().read("unit.json", strings.NewReader("{\"Action\":\"start\"}\nexit status 1\n"))
	if err == nil || !strings.HasPrefix(err.Error(), `unit.json: "exit status 1\n" is not an event`) {
		t.Errorf("got %v", err)
	}
}
