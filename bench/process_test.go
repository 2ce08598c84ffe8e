package main

import (
	"bufio"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseMemory(t *testing.T) {
	got, err := parseMemory("Name:\takri\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nRssFile:\t      4 kB\nThreads:\t9\n")
	if want := (usage{now: 1 << 20, file: 4 << 10, peak: 2 << 20}); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	_, err = parseMemory("Name:\tzombie\nState:\tZ (zombie)\n")
	expectError(t, err, "no VmRSS: the process has exited")
	_, err = parseMemory("VmRSS:\tmany kB\n")
	expectError(t, err, `read "VmRSS:\tmany kB\n": strconv.ParseInt`)
	if own, err := memoryOf(os.Getpid()); err != nil || own.now < 1<<20 || own.peak < own.now {
		t.Errorf("this process: got %+v, %v", own, err)
	}
}

func TestParseCPU(t *testing.T) {
	const before, after = "7 (akri-agent) S 1 2 3 4 5 6 7 8 9 10 ", " 0 0 20 0 9\n"
	cases := map[string]struct {
		stat string
		used time.Duration
		want string
	}{
		"user and system time":              {before + "120 34" + after, 1540 * time.Millisecond, ""},
		"a name with parentheses":           {"7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 120 34" + after, 1540 * time.Millisecond, ""},
		"the shortest":                      {before + "120 34", 1540 * time.Millisecond, ""},
		"no system time":                    {before + "120", 0, "too short"},
		"nothing":                           {"", 0, "too short"},
		"user time is not a number":         {before + "x 34" + after, 0, `strconv.ParseInt: parsing "x"`},
		"system time is not a number":       {before + "120 y" + after, 0, `strconv.ParseInt: parsing "y"`},
		"the time of its children is other": {before + "0 0 500 500", 0, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			used, err := parseCPU(c.stat)
			expectError(t, err, c.want)
			if err == nil && used != c.used {
				t.Errorf("got %v, want %v", used, c.used)
			}
		})
	}
	if used, err := cpu(os.Getpid()); err != nil || used < 0 {
		t.Errorf("this process: got %v, %v", used, err)
	}
}

// The figures of several processes are their sums; here, the test is both of them.
func TestSumsOfProcesses(t *testing.T) {
	one := os.Getpid()
	measure := func(pids ...int) (time.Duration, int64) {
		used, err1 := cpu(pids...)
		memory, err2 := memoryOf(pids...)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return used, memory.peak
	}
	for used, _ := measure(one); used < 100*time.Millisecond; used, _ = measure(one) {
	}
	usedBefore, peakBefore := measure(one)
	used, peak := measure(one, one)
	usedAfter, peakAfter := measure(one)
	if used < 2*usedBefore || used > 2*usedAfter {
		t.Errorf("processor time: got %v, want twice %v to %v", used, usedBefore, usedAfter)
	}
	if peak < 2*peakBefore || peak > 2*peakAfter {
		t.Errorf("peak of memory: got %d, want twice %d to %d", peak, peakBefore, peakAfter)
	}
	if _, err := cpu(one, -1); err == nil {
		t.Error("processor time of no process: got no error")
	}
	if _, err := memoryOf(one, -1); err == nil {
		t.Error("memory of no process: got no error")
	}
}

func TestParseMetrics(t *testing.T) {
	const text = `# HELP workqueue_depth Current depth
workqueue_depth{controller="a",name="a"} 1
workqueue_depth{controller="b",name="b"} 2
go_memstats_heap_inuse_bytes 1.5e+06
go_memstats_heap_inuse_bytes_other 7
`
	got, err := parseMetrics(strings.NewReader(text), []string{depth, "go_memstats_heap_inuse_bytes ", "nothing"})
	want := map[string]float64{depth: 3, "go_memstats_heap_inuse_bytes ": 1.5e6}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestParseMetricsRefuses(t *testing.T) {
	_, err := parseMetrics(strings.NewReader("other many\nworkqueue_depth{} many\n"), []string{depth})
	expectError(t, err, `read the metric "workqueue_depth{} many": strconv.ParseFloat`)
	_, err = parseMetrics(strings.NewReader(strings.Repeat("x", bufio.MaxScanTokenSize)), nil)
	expectError(t, err, "bufio.Scanner: token too long")
}

// An answer that is no list of metrics must not count as zeros, or be kept as a profile.
func TestDownloadRefuses(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := (&process{name: "akri-agent", metrics: server.URL}).gauges(t.Context(), depth)
	expectError(t, err, "read the metrics of akri-agent: 404 Not Found")
	b := &bench{options: options{Profiles: t.TempDir()}}
	expectError(t, b.profile(t.Context(), server.URL, "heap"), "take a profile: 404 Not Found")
	if files, err := os.ReadDir(b.Profiles); err != nil || len(files) != 0 {
		t.Errorf("profiles: %v, %v, want none", files, err)
	}
}

func TestPerObject(t *testing.T) {
	got := perObject(map[string]int{"patch services": 4, "get pods": 2, "get nodes": 2}, 4)
	if want := "patch services 1.000, get nodes 0.500, get pods 0.500"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
