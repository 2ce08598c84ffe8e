package main

import (
	"fmt"
	"slices"
	"testing"

	"akri.sh/akri/bench/stub"
)

// resources returns so many resources with so many slots each.
func resources(count, slots int) map[string]stub.Resource {
	all := map[string]stub.Resource{}
	for i := range count {
		all[fmt.Sprintf("akri.sh/shared-%03d", i)] = stub.Resource{Healthy: make([]string, slots)}
	}
	return all
}

func TestWithSlots(t *testing.T) {
	all := resources(50, 10)
	all["akri.sh/local-1"] = stub.Resource{Healthy: []string{"1"}} // of a device that is leaving
	names, err := withSlots(all)
	if err != nil || len(names) != 50 || !slices.IsSorted(names) || slices.Contains(names, "akri.sh/local-1") {
		t.Errorf("got %v, %v, want the 50 resources in order", names, err)
	}
	for name, c := range map[string]struct {
		all   map[string]stub.Resource
		found int
	}{
		"one is missing":   {resources(49, 10), 49},
		"one too many":     {resources(51, 10), 51},
		"a slot is in use": {resources(50, 9), 0},
	} {
		_, err := withSlots(c.all)
		expectError(t, err, fmt.Sprintf("the kubelet has %d resources with 10 slots, want 50", c.found))
		if err == nil {
			t.Error(name)
		}
	}
}

func TestCheckShared(t *testing.T) {
	for found, want := range map[int]string{
		49: "found 49 shared Instances, want 50", 50: "", 51: "found 51 shared Instances, want 50",
	} {
		expectError(t, checkShared(found), want)
	}
}
