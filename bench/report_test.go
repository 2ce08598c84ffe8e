package main

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[99-i] = float64(i + 1)
	}
	cases := []struct {
		values []float64
		p      float64
		want   float64
	}{
		{hundred, 50, 50}, {hundred, 95, 95}, {hundred, 100, 100}, {hundred, 0, 1},
		{[]float64{7}, 95, 7}, {[]float64{1, 2}, 50, 1}, {[]float64{1, 2}, 51, 2}, {[]float64{3, 1, 2}, 50, 2},
	}
	for _, c := range cases {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile %v of %d values: %v, want %v", c.p, len(c.values), got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) || hundred[0] != 100 {
		t.Error("no values: got a number, want NaN; and values stay in their order")
	}
}

// repeat returns a value 18 times, then another one twice: the 95th percentile.
func repeat(value, high float64) []float64 {
	values := make([]float64, 20)
	for i := range values {
		values[i] = value
	}
	values[18], values[19] = high, high
	return values
}

// Each limit has the largest figure that meets it and the smallest that does not.
func TestLatencyRow(t *testing.T) {
	bare, both, ratio := repeat(2, 4), latencyLimit{median: 4, high: 8}, latencyLimit{ratio: 1.5}
	for _, c := range []struct {
		ours  []float64
		limit latencyLimit
		want  string
	}{
		{repeat(4, 8), both, "yes"}, {repeat(4.1, 8), both, "NO"}, {repeat(4, 8.1), both, "NO"},
		{repeat(5, 6), ratio, "yes"}, {repeat(2, 6.1), ratio, "NO"}, {repeat(99, 99), latencyLimit{}, ""},
	} {
		if row := latencyRow("x", c.ours, bare, 95, c.limit); row.verdict() != c.want {
			t.Errorf("%s: limit %s: got %q, want %q", row.Measured, row.Limit, row.verdict(), c.want)
		}
	}
	row := latencyRow("x", repeat(3, 5), bare, 95, both)
	if got, want := row.What+": "+row.Measured+" | "+row.Bare,
		"x, p50 / p95 of 20: 3.0 / 5.0 ms, ratio of p50 1.50, of p95 1.25 | 2.0 / 4.0 ms"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRestRows(t *testing.T) {
	requests := []auditLine{{Verb: "get"}, {Verb: "watch"}, {Verb: "list"}, {Verb: "patch"}}
	row := restRow("x", 10*time.Second, 0.02, requests)
	if want := "2; other requests: 2; CPU 0.20 % of a core"; row.Measured != want || row.verdict() != "NO" {
		t.Errorf("at rest: got %s, %s, want %s, NO", row.Measured, row.verdict(), want)
	}
	if row := restRow("x", time.Second, 0, requests[:2]); row.verdict() != "yes" {
		t.Errorf("without writes and lists: got %s", row.verdict())
	}
	if row := restartRow(2, time.Second, requests); row.verdict() != "NO" || !strings.HasPrefix(row.Measured, "1; ") {
		t.Errorf("restart with a write: got %s, %s", row.Measured, row.verdict())
	}
	if row := restartRow(2, time.Second, requests[:3]); row.verdict() != "yes" {
		t.Errorf("restart without a write: got %s", row.verdict())
	}
	for used, want := range map[float64]string{40: "yes", 40.1: "NO"} {
		if row := memoryRow("x", usage{memory: used}, 1, controllerMemory(300)); row.verdict() != want {
			t.Errorf("memory: %s: got %q, want %q", row.Measured, row.verdict(), want)
		}
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	r := report{log: io.Discard}
	r.add(figure{What: "a", Measured: "1 s", Bare: "2 s", Limit: "<= 3 s", Met: true},
		figure{What: "long name", Measured: "9 s", Limit: "0"}, figure{What: "b", Measured: "5"})
	const want = `
machine

MEASUREMENT  AKRI  BARE CLIENT  LIMIT   MET
a            1 s   2 s          <= 3 s  yes
long name    9 s                0       NO
b            5                          
`
	if err := r.print(&out, "machine"); err != nil || out.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, out.String(), want)
	}
}
