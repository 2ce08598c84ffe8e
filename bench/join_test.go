package main

import (
	"slices"
	"testing"
	"time"
)

func TestJoinTimes(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	write := func(node, name string, code, began, done int) auditLine {
		return auditLine{
			Verb: "patch", Agent: agentName, Version: node, Resource: "instances", Name: name, Code: code, Began: at(began), Done: at(done),
		}
	}
	got := joinTimes([]auditLine{
		write("4", "a", 200, 0, 90),   // of a node that was there before
		write("10", "a", 422, 10, 12), // a failed attempt counts
		write("10", "b", 200, 20, 25),
		{Verb: "get", Version: "10", Resource: "instances", Name: "c", Code: 200, Began: at(0), Done: at(99)},
		write("10", "a", 200, 30, 40),
		write("10", "a", 200, 50, 60), // a later write of the same node does not
		write("11", "a", 500, 50, 60), // has not joined
		write("", "a", 200, 0, 99),    // of another program
	}, 5)
	slices.Sort(got)
	if want := []float64{5, 30}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTallyOutcomes(t *testing.T) {
	counts := tallyOutcomes([]auditLine{
		{Verb: "patch", Resource: "instances", Code: 200}, {Verb: "patch", Resource: "instances", Code: 200},
		{Verb: "patch", Resource: "instances", Code: 422}, {Verb: "get", Resource: "instances", Code: 200},
	})
	if got, want := listCounts(counts), "patch instances 2, get instances 1, patch instances (422) 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
