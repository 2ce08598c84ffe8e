package main

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMeanSize(t *testing.T) {
	instance := func(metadata map[string]any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"kind": "Instance", "apiVersion": "akri.sh/v0", "metadata": metadata}}
	}
	bare := instance(map[string]any{})
	text, err := bare.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const added = len(`"managedFields":["abcd"]`)
	got, err := meanSizeOf([]unstructured.Unstructured{bare, instance(map[string]any{"managedFields": []any{"abcd"}})})
	// Without managedFields, they are "null".
	want := meanSize{all: (2*len(text) + added) / 2, managed: (len("null") + len(`["abcd"]`)) / 2}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	_, err = meanSizeOf([]unstructured.Unstructured{instance(map[string]any{"managedFields": "text"})})
	expectError(t, err, ".metadata.managedFields accessor error")
}

func TestJoinTimes(t *testing.T) {
	write := func(node, name string, code, began, done int) auditLine {
		return auditLine{
			Verb: "patch", Agent: agentName, Version: node, Resource: "instances", Name: name, Code: code, Began: at(began), Done: at(done),
		}
	}
	requests := []auditLine{
		write("4", "a", 200, 0, 90),   // of a node that was there before
		write("10", "a", 422, 10, 12), // a failed attempt counts
		write("10", "b", 200, 20, 25),
		{Verb: "get", Version: "10", Resource: "instances", Name: "c", Code: 200, Began: at(0), Done: at(99)},
		write("10", "a", 200, 30, 40),
		write("10", "a", 200, 50, 60), // a later write of the same node does not
		write("11", "a", 500, 50, 60), // has not joined
		write("", "a", 200, 0, 99),    // of another program
	}
	got, err := joinTimes(requests, 5, 2)
	slices.Sort(got)
	if want := []float64{5, 30}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, want := range []int{1, 3} {
		_, err := joinTimes(requests, 5, want)
		expectError(t, err, fmt.Sprintf("found the requests of 2 joins, want %d", want))
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
