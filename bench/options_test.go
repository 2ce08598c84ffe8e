package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// validOptions returns options that are accepted, at their lower limits.
func validOptions() options {
	return options{
		Instances: []int{1}, Rounds: 1, Growth: 3 * growthStep, Repairs: 1, Messages: 1, Allocations: 1, Devices: 1,
		Shapes: []string{"local:1x1"}, Rest: time.Nanosecond,
	}
}

func TestValidateOptions(t *testing.T) {
	const (
		ofAgents = "messages and rest must be positive, joins must not be negative, and allocations must be from 1 to 500"
		ofRounds = "rounds and repairs must be at least 1, and foreign and idle must not be negative"
	)
	cases := map[string]struct {
		change func(*options)
		want   string // an error; empty: accepted
	}{
		"the lower limits": {func(*options) {}, ""},
		"the upper limits": {func(o *options) { o.Instances, o.Growth, o.Allocations = []int{1, 5000}, 5000, 500 }, ""},
		"unknown part": {
			func(o *options) { o.Only = []string{"idle", "speed"} },
			`unknown part "speed": choose from converge, growth, restart, idle, churn, repair, memory, rollout, departure, agent, fleet`,
		},
		"no number":              {func(o *options) { o.Instances = nil }, "the number of Instances is missing"},
		"no Instance":            {func(o *options) { o.Instances = []int{5, 0} }, "0 Instances: must be from 1 to 5000"},
		"too many Instances":     {func(o *options) { o.Instances = []int{5001, 5} }, "5001 Instances: must be from 1 to 5000"},
		"too little growth":      {func(o *options) { o.Growth = 1499 }, "growth to 1499 Instances: must be from 1500 to 5000"},
		"too much growth":        {func(o *options) { o.Growth = 5001 }, "growth to 5001 Instances: must be from 1500 to 5000"},
		"a shape without a size": {func(o *options) { o.Shapes = []string{"local:1x1", "local"} }, `shape "local": want local:DEVICESxNODES`},
		"no message":             {func(o *options) { o.Messages = 0 }, ofAgents},
		"no allocation":          {func(o *options) { o.Allocations = 0 }, ofAgents},
		"too many allocations":   {func(o *options) { o.Allocations = 501 }, ofAgents},
		"negative joins":         {func(o *options) { o.Joins = -1 }, ofAgents},
		"no device":              {func(o *options) { o.Devices = 0 }, "0 devices: must be from 1 to 1000"},
		"too many devices":       {func(o *options) { o.Devices = 1001 }, "1001 devices: must be from 1 to 1000"},
		"no rest":                {func(o *options) { o.Rest = 0 }, ofAgents},
		"no round":               {func(o *options) { o.Rounds = 0 }, ofRounds},
		"no repair":              {func(o *options) { o.Repairs = 0 }, ofRounds},
		"negative foreign":       {func(o *options) { o.Foreign = -1 }, ofRounds},
		"negative idle":          {func(o *options) { o.Idle = -1 }, ofRounds},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := validOptions()
			c.change(&o)
			expectError(t, o.validate(), c.want)
		})
	}
}

// expectError compares the beginning of an error; an empty one means no error.
func expectError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got the error %q, want none", err)
	case want != "" && err == nil:
		t.Errorf("got no error, want %q", want)
	case want != "" && !strings.HasPrefix(err.Error(), want):
		t.Errorf("got the error %q, want %q", err, want)
	}
}

func TestDefaultParts(t *testing.T) {
	o := validOptions()
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	want := []string{"converge", "restart", "idle", "churn", "repair", "memory", "agent", "fleet"}
	if !slices.Equal(o.Only, want) {
		t.Errorf("got %v, want %v", o.Only, want)
	}
	if len(parts) != len(want)+len(longParts) {
		t.Errorf("parts are now %v: the defaults changed them", parts)
	}
	if (&bench{options: options{Only: []string{"agent", "fleet"}}}).needsController() {
		t.Error("the agent's parts need the controller")
	}
	if !(&bench{options: options{Only: []string{"agent", "idle"}}}).needsController() {
		t.Error("the part idle does not need the controller")
	}
}

// A run with invalid flags ends before it builds or starts anything. Rounds are
// checked last, so all other defaults are valid.
func TestFlags(t *testing.T) {
	for argument, want := range map[string]string{
		"--rounds=0":    "rounds and repairs must be at least 1",
		"--only=speed":  `unknown part "speed"`,
		"--instances=0": "0 Instances: must be",
		"--growth=1":    "growth to 1 Instances",
		"--shapes=x":    `shape "x": want`,
		"--joins=-1":    "messages and rest must be positive, joins must not",
		"--idle=-1s":    "rounds and repairs must be at least 1, and foreign and idle must not",
		"argument":      `unknown command "argument"`,
	} {
		root := newRoot()
		root.SetArgs([]string{argument})
		root.SetOut(io.Discard)
		expectError(t, root.ExecuteContext(t.Context()), want)
	}
}

func TestLimits(t *testing.T) {
	o := options{}
	for _, c := range []struct {
		controllers bool
		count       int
		want        limits
	}{
		{false, 300, limits{ratio: 1.2, requests: 1.35}}, {false, 1000, limits{ratio: 1.2, requests: 1.35}},
		{true, 999, limits{ratio: 1.05, requests: 1.36}}, {true, 1000, limits{ratio: 1.02, requests: 1.36}},
	} {
		o.Controllers = c.controllers
		if got := o.limits(c.count); got != c.want {
			t.Errorf("%d Instances, controllers %t: got %+v, want %+v", c.count, c.controllers, got, c.want)
		}
	}
	for count, want := range map[int]float64{1: 40, 300: 40, 301: 50, 500: 50, 501: 0, 4999: 0, 5000: 80} {
		if got := maxMemory(count); got != want {
			t.Errorf("memory with %d Instances: limit %.0f, want %.0f", count, got, want)
		}
	}
}
