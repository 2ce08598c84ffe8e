package main

import (
	"maps"
	"os"
	"strings"
	"testing"
)

func TestMemoryOf(t *testing.T) {
	got, err := parseMemory("Name:\takri\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nRssFile:\t      4 kB\nThreads:\t9\n")
	if want := (usage{now: 1 << 20, file: 4 << 10, peak: 2 << 20}); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := parseMemory("Name:\tzombie\nState:\tZ (zombie)\n"); err == nil {
		t.Error("a process without memory: got no error")
	}
}

func TestCPU(t *testing.T) {
	if used, err := cpu(os.Getpid()); err != nil || used < 0 {
		t.Errorf("got %v, %v", used, err)
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

func TestPerObject(t *testing.T) {
	got := perObject(map[string]int{"patch services": 4, "get pods": 2, "get nodes": 2}, 4)
	if want := "patch services 1.000, get nodes 0.500, get pods 0.500"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
