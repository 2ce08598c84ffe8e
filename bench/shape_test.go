package main

import (
	"strings"
	"testing"
)

func TestParseShape(t *testing.T) {
	for text, want := range map[string]shape{
		"local:100x7":   {Devices: 100, Nodes: 7},
		"shared:1x1000": {Shared: true, Devices: 1, Nodes: 1000},
	} {
		if got, err := parseShape(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "local", "local:3", "local:0x1", "local:1x0", "local:1x1001", "other:1x1", "local:1x1x1"} {
		if _, err := parseShape(text); err == nil {
			t.Errorf("%q was parsed without an error", text)
		}
	}
	if got := (shape{Devices: 3, Nodes: 2}).instances(); got != 6 {
		t.Errorf("3 local devices on 2 nodes are %d Instances, want 6", got)
	}
	if got := (shape{Shared: true, Devices: 3, Nodes: 2}).instances(); got != 3 {
		t.Errorf("3 shared devices on 2 nodes are %d Instances, want 3", got)
	}
}

func TestCheckLimits(t *testing.T) {
	if err := (shape{Devices: 1, Nodes: 1}).checkLimits(0); err != nil {
		t.Errorf("one device on one node: %v", err)
	}
	err := (shape{Devices: 1_000_000, Nodes: 1000}).checkLimits(0)
	if err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("a billion devices: %v", err)
	}
}
