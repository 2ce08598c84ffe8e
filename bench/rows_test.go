package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// repeat returns a value count times, then others.
func repeat(value float64, count int, others ...float64) []float64 {
	values := make([]float64, 0, count+len(others))
	for range count {
		values = append(values, value)
	}
	return append(values, others...)
}

// requestsOf returns so many requests of one kind.
func requestsOf(count int, verb, resource string) []auditLine {
	requests := make([]auditLine, count)
	for i := range requests {
		requests[i] = auditLine{Verb: verb, Resource: resource, Code: 200}
	}
	return requests
}

// growthOf returns the first row for a bare client that takes a second for each step.
func growthOf(first, last time.Duration) figure {
	second := settled{lastObject: time.Second, cpu: time.Second}
	round := controllerResult{steps: []settled{{lastObject: first}, {lastObject: time.Second}, {lastObject: last}}}
	return growthRows(2000, []settled{second, second, second}, round, 1.2)[0]
}

// comparisonOf returns the rows of one round with one Instance.
func comparisonOf(controller time.Duration, requests int) []figure {
	bare := settled{lastObject: time.Second, lastStatus: time.Second, cpu: time.Second, own: 0.5}
	ours := settled{lastObject: controller, lastStatus: controller, cpu: 2 * time.Second, own: 0.6}
	round := comparison{bare: bare, controller: ours, requests: requestsOf(requests, "patch", "services"), used: 3 * time.Millisecond}
	return comparisons{round}.figures(1, limits{ratio: 1.2, requests: 1.34})
}

// comparisonsOf returns rounds with these numbers of requests.
func comparisonsOf(requests ...int) comparisons {
	rounds := make(comparisons, len(requests))
	for i, count := range requests {
		rounds[i].requests = requestsOf(count, "patch", "services")
	}
	return rounds
}

// repairOf returns the row of a drift, whose repairs take these milliseconds.
func repairOf(index int, took []float64) figure {
	return repairRow(drifts[index], took, repeat(1, 20), nil)
}

// rolloutOf returns the row for rollouts that take a millisecond for each of few Instances,
// and these microseconds for each of many.
func rolloutOf(each time.Duration) figure {
	few := rolledOut{instances: 50, edits: 2, requests: requestsOf(200, "patch", "services"), used: 100 * time.Millisecond}
	many := rolledOut{instances: 5000, edits: 1, requests: requestsOf(10_000, "patch", "services"), used: 5000 * each * time.Microsecond}
	return rolloutRow(few, many)
}

// foreignOf returns the row for a controller that uses 50 MB without foreign objects.
func foreignOf(running, restarted float64) figure {
	rss := func(mb float64) map[string]float64 { return map[string]float64{"rss": mb} }
	return foreignRow(100, 10, rss(50), rss(running), rss(restarted))
}

// departureOf returns the row for a garbage collector that needs three requests.
func departureOf(count int, took time.Duration, requests int) figure {
	alone := departed{took: time.Minute, requests: requestsOf(3, "delete", "services")}
	return departureRow(count, departed{took: took, requests: requestsOf(requests, "delete", "services")}, alone)
}

// residentOf returns the row for the memory of an agent with a limit of 18 MB.
func residentOf(bytes int64) figure {
	return residentRow("without devices", usage{now: bytes}, maxEmptyMemory)
}

// fullOf is residentOf for an agent with devices.
func fullOf(bytes int64) figure { return residentRow("with devices", usage{now: bytes}, maxFullMemory) }

// joinOf returns the row for joins that all take the same time.
func joinOf(took float64) figure { return joinRow(repeat(took, 3), repeat(1, 1), repeat(1, 1), nil) }

// sizeOf returns the row for two nodes that increase an Instance of 1000 bytes.
func sizeOf(bytes int) figure {
	return sizeRow(meanSize{all: 1000}, meanSize{all: 1000 + bytes, managed: 20}, 3, 2)
}

// leftOf returns the row for two nodes that leave bytes in an Instance of 1000 bytes.
func leftOf(bytes int) figure {
	return leaveRow(meanSize{all: 1000}, meanSize{all: 1000 + bytes}, 2, 3, requestsOf(6, "patch", "instances"))
}

// mb returns a row for the controller's memory.
func mb(count int, used float64) figure { return memoryRow(count, map[string]float64{"rss": used}) }

// Each limit has the largest figure that meets it and the smallest that does not.
func TestVerdicts(t *testing.T) {
	cases := map[string]struct{ met, missed []figure }{
		"settle ratio": {
			[]figure{comparisonOf(1200*time.Millisecond, 4)[0]}, []figure{comparisonOf(1201*time.Millisecond, 4)[0]},
		},
		"requests per object": {
			[]figure{comparisonOf(time.Second, 4)[2]},
			[]figure{comparisonOf(time.Second, 5)[2], comparisonsOf(4, 5, 4).figures(1, limits{requests: 1.34})[2]},
		},
		"growth": {
			[]figure{growthOf(time.Second, 1100*time.Millisecond), growthOf(time.Second, 900*time.Millisecond)},
			[]figure{
				growthOf(time.Second, 1101*time.Millisecond), growthOf(time.Second, 899*time.Millisecond),
				growthOf(1201*time.Millisecond, 1200*time.Millisecond), growthOf(1200*time.Millisecond, 1201*time.Millisecond),
			},
		},
		"departure": {
			[]figure{departureOf(300, 5*time.Second, 3)},
			[]figure{departureOf(300, 5001*time.Millisecond, 3), departureOf(300, 5*time.Second, 4)},
		},
		"repair": {
			[]figure{
				repairOf(0, repeat(4.5, 18, 6, 6)), repairOf(1, repeat(8, 18, 15, 15)), repairOf(2, repeat(10, 18, 25, 25)),
			},
			[]figure{
				repairOf(0, repeat(4.6, 20)), repairOf(0, repeat(4.5, 18, 6.1, 6.1)),
				repairOf(1, repeat(8.1, 20)), repairOf(1, repeat(8, 18, 15.1, 15.1)),
				repairOf(2, repeat(10.1, 20)), repairOf(2, repeat(10, 18, 25.1, 25.1)),
			},
		},
		"rollout": {[]figure{rolloutOf(1100), rolloutOf(100)}, []figure{rolloutOf(1101)}},
		"controller's memory": {
			[]figure{mb(300, 40), mb(500, 50), mb(5000, 80)}, []figure{mb(300, 40.1), mb(500, 50.1), mb(5000, 80.1)},
		},
		"foreign objects": {[]figure{foreignOf(54.9, 54.9)}, []figure{foreignOf(55.1, 50), foreignOf(50, 55.1)}},
		"message": {
			[]figure{messageRows(latencies{added: repeat(4, 18, 8, 8)}, latencies{})[0]},
			[]figure{
				messageRows(latencies{added: repeat(4.1, 20)}, latencies{})[0],
				messageRows(latencies{added: repeat(4, 18, 8.1, 8.1)}, latencies{})[0],
			},
		},
		"leaving device": {
			[]figure{messageRows(latencies{deleted: repeat(1, 18, 12, 12)}, latencies{})[1]},
			[]figure{messageRows(latencies{deleted: repeat(1, 18, 12.1, 12.1)}, latencies{})[1]},
		},
		"many devices":   {[]figure{manyRow(repeat(100, 3, 900, 900), nil)}, []figure{manyRow(repeat(100.1, 5), nil)}},
		"agent's memory": {[]figure{residentOf(18e6), fullOf(22e6)}, []figure{residentOf(18e6 + 1), fullOf(22e6 + 1)}},
		"rest": {
			[]figure{restRow(time.Second, 0, requestsOf(3, "get", "instances"))},
			[]figure{
				restRow(time.Second, 0, requestsOf(1, "list", "instances")), restRow(time.Second, 0, requestsOf(1, "patch", "instances")),
			},
		},
		"allocate":       {[]figure{allocateRow(repeat(1.2, 9), repeat(1, 9))}, []figure{allocateRow(repeat(1.21, 9), repeat(1, 9))}},
		"join":           {[]figure{joinOf(50)}, []figure{joinOf(50.1)}},
		"bytes of nodes": {[]figure{sizeOf(200)}, []figure{sizeOf(201)}},
		"restart": {
			[]figure{restartRow(2, time.Second, requestsOf(5, "list", "instances"))},
			[]figure{restartRow(2, time.Second, requestsOf(1, "patch", "services"))},
		},
		"idle": {
			[]figure{idleRow(time.Minute, 0, requestsOf(5, "watch", "instances"))},
			[]figure{idleRow(time.Minute, 0, requestsOf(1, "update", "services"))},
		},
		"churn":       {[]figure{churnRow(9, nil)}, []figure{churnRow(0, requestsOf(1, "get", "services"))}},
		"left behind": {[]figure{leftOf(2), leftOf(-5)}, []figure{leftOf(3)}},
	}
	for name, c := range cases {
		for _, row := range c.met {
			if row.verdict() != "yes" {
				t.Errorf("%s: %s: limit %s: got %q, want yes", name, row.Measured, row.Bar, row.verdict())
			}
		}
		for _, row := range c.missed {
			if row.verdict() != "NO" {
				t.Errorf("%s: %s: limit %s: got %q, want NO", name, row.Measured, row.Bar, row.verdict())
			}
		}
	}
	for _, row := range []figure{mb(501, 1000), departureOf(301, time.Hour, 99)} {
		if row.Bar != "" || row.verdict() != "" {
			t.Errorf("%s: got the limit %s, want none", row.What, row.Bar)
		}
	}
}

// The figures of the rows, in the form in which they are printed.
func TestRows(t *testing.T) {
	compared := comparisonOf(1500*time.Millisecond, 4)
	round := controllerResult{
		steps: []settled{
			{lastObject: time.Second, cpu: time.Second}, {lastObject: 3 * time.Second}, {lastObject: 2 * time.Second, cpu: 3 * time.Second},
		},
		requests: requestsOf(3000, "patch", "services"), used: 1500 * time.Millisecond,
	}
	second := settled{lastObject: time.Second, cpu: 2 * time.Second}
	grown := growthRows(2000, []settled{second, second, second}, round, 1.2)
	for _, c := range []struct {
		row        figure
		what, want string
	}{
		{compared[0], "settle time, 1 Instances x 3", "1.50 s, 2 objects/s, ratio 1.50 (rounds 1.50) | 1.00 s, 3 objects/s"},
		{
			compared[1], "workers' time outside the API server, 1 Instances x 3",
			"60 % (rounds 0.60); settle ratio if the API server were as fast for both: 1.25 | 50 % (rounds 0.50)",
		},
		{compared[2], "API requests per object, 1 Instances x 3", "1.333 (rounds 1.333); last: patch services 1.333 | 1.333"},
		{
			compared[3], "CPU of all processes, 1 Instances x 3",
			"2.00 s, ratio 2.00; of that the controller 0.00 s, 1000 us per object | 1.00 s",
		},
		{
			grown[0], "settle time of the first and last 500 of 2000 Instances",
			"1.00 s, 2.00 s (ratios 1.00, 2.00; of CPU 0.50, 1.50) | 1.00 s, 1.00 s",
		},
		{
			grown[1], "settle time of the 1000 Instances in between",
			"3.00 s (ratio 3.00); CPU for all 1.5 s; requests for all 0.500 per object: patch services 0.500 | 1.00 s",
		},
		{
			restRow(10*time.Second, 20*time.Millisecond, append(requestsOf(2, "get", "nodes"), requestsOf(1, "list", "nodes")...)),
			"10s at rest", "1; other requests: 2; CPU 0.20 % | ",
		},
		{
			sizeOf(200), "bytes of a shared Instance per node",
			"100, including 10 of managedFields; the Instance with 5 nodes 1.2 KB | ",
		},
		{
			restartRow(2, 1500*time.Millisecond, requestsOf(3, "list", "instances")), "writes after a restart with 6 objects",
			"0; at rest after 1.5 s; all requests: map[list instances:3] | 8 if it applied everything again",
		},
		{
			idleRow(time.Minute, 30*time.Millisecond, append(requestsOf(2, "patch", "services"), requestsOf(1, "watch", "instances")...)),
			"writes within 1m0s at rest", "2; other requests: 1; CPU 0.05 % | 0",
		},
		{churnRow(4, requestsOf(1, "get", "services")), "requests caused by 100 status writes on Deployments", "1; reconciles: 4 | 0"},
		{
			rolloutOf(500), "CPU of the controller for each Instance of a rollout over 50 and over 5000",
			"1000 us, 500 us, ratio 0.50; requests 2.00, 2.00: patch services 2.000 | ",
		},
		{leftOf(3), "bytes that a node leaves behind in an Instance", "1.5; 1.00 writes per Instance | "},
		{
			joinRow(repeat(3, 2), repeat(9, 2), repeat(2, 2), requestsOf(3, "patch", "instances")), "a node joins an Instance, p50 / p95 of 2",
			"3.0 / 3.0 ms, 1.50 writes; an agent from its start to the last resource 9 / 9 ms | one patch 2.0 / 2.0 ms",
		},
	} {
		if got := c.row.Measured + " | " + c.row.Bare; c.row.What != c.what || got != c.want {
			t.Errorf("got  %s: %s\nwant %s: %s", c.row.What, got, c.what, c.want)
		}
	}
}

func TestComparisonsTakeTheMedian(t *testing.T) {
	var rounds comparisons
	for _, seconds := range []time.Duration{9, 1, 2} {
		rounds = append(rounds, comparison{bare: settled{lastObject: time.Second}, controller: settled{lastObject: seconds * time.Second}})
	}
	row := rounds.figures(10, limits{ratio: 2})[0]
	if want := "2.00 s, 15 objects/s, ratio 2.00 (rounds 9.00, 1.00, 2.00)"; row.Measured != want || !row.Met {
		t.Errorf("got %s, met %t, want %s", row.Measured, row.Met, want)
	}
}

func TestPrintTable(t *testing.T) {
	var out strings.Builder
	err := printTable(&out, []figure{
		{What: "a", Measured: "1 s", Bare: "2 s", Bar: "<= 3 s", Met: true},
		{What: "long name", Measured: "9 s", Bar: "0"}, {What: "b", Measured: "5"},
	})
	const want = `MEASUREMENT  AKRI  BARE CLIENT  LIMIT   MET
a            1 s   2 s          <= 3 s  yes
long name    9 s                0       NO
b            5                          
`
	if err != nil || out.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestFormat(t *testing.T) {
	if got := fmt.Sprint(milliseconds(1234567*time.Nanosecond), " ", list([]float64{1, 2.345}), " ", list(nil)); got != "1.234 1.00, 2.35 " {
		t.Errorf("got %q", got)
	}
	if got := (shape{Shared: true, Devices: 3, Nodes: 2}).String() + ", " + (shape{Devices: 1, Nodes: 1}).String(); got !=
		"3 shared devices x 2 nodes, 1 local devices x 1 nodes" {
		t.Errorf("got %q", got)
	}
}
