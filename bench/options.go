package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// parts are the parts of a run, in the order in which they are measured.
var parts = []string{"converge", "growth", "restart", "idle", "churn", "repair", "memory", "rollout", "departure", "agent", "fleet"}

// longParts are measured only on request.
var longParts = []string{"growth", "rollout", "departure"}

// maxInstances bounds the number of Instances of a run.
const maxInstances = 5000

// options are the settings of a run.
type options struct {
	// Only lists the parts to measure; empty: all but the longParts.
	Only []string
	// Instances are the numbers of Instances to converge. The other parts use the
	// last one.
	Instances []int
	// Rounds is how many times the controller and the bare client are measured.
	Rounds int
	// Growth is the number of Instances in the parts growth and rollout, at least 1500.
	Growth int
	// Controllers runs all controllers of kube-controller-manager during the
	// measurements; otherwise none runs.
	Controllers bool
	// Idle is how long the idle controller is observed.
	Idle time.Duration
	// Repairs is the number of edits, and of deletions, that are repaired.
	Repairs int
	// Foreign is the number of unrelated objects in the part memory.
	Foreign int
	// Messages is how many messages of a handler the part agent measures, and
	// Allocations how many calls of Allocate.
	Messages, Allocations int
	// Devices is the number of devices with which the part agent measures the memory.
	Devices int
	// Shapes are the numbers of devices and nodes of the part fleet; see parseShape.
	Shapes []string
	// Joins is the number of nodes that join shared devices, one after the other, once
	// a shape has settled.
	Joins int
	// Rest is how long settled agents are observed.
	Rest time.Duration
	// Profiles is a directory for profiles of the controller, which is then built
	// with a profiler; empty: none.
	Profiles string
	// JSON is a file for the raw numbers; empty: none.
	JSON string
	// Out receives the table, and Log the progress.
	Out, Log io.Writer
}

func (o *options) validate() error {
	for _, part := range o.Only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("unknown part %q: choose from %s", part, strings.Join(parts, ", "))
		}
	}
	if len(o.Only) == 0 {
		o.Only = slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return slices.Contains(longParts, part) })
	}
	if len(o.Instances) == 0 {
		return errors.New("the number of Instances is missing")
	}
	for _, n := range o.Instances {
		if n < 1 || n > maxInstances {
			return fmt.Errorf("%d Instances: must be from 1 to %d", n, maxInstances)
		}
	}
	if o.Growth < 3*growthStep || o.Growth > maxInstances {
		return fmt.Errorf("growth to %d Instances: must be from %d to %d", o.Growth, 3*growthStep, maxInstances)
	}
	for _, text := range o.Shapes {
		if _, err := parseShape(text); err != nil {
			return err
		}
	}
	if o.Messages < 1 || o.Allocations < 1 || o.Allocations > maxAllocations || o.Joins < 0 || o.Rest <= 0 {
		return fmt.Errorf("messages and rest must be positive, joins must not be negative, and allocations must be from 1 to %d",
			maxAllocations)
	}
	if o.Devices < 1 || o.Devices > maxNamespaceDevices {
		return fmt.Errorf("%d devices: must be from 1 to %d", o.Devices, maxNamespaceDevices)
	}
	if o.Rounds < 1 || o.Repairs < 1 || o.Foreign < 0 || o.Idle < 0 {
		return errors.New("rounds and repairs must be at least 1, and foreign and idle must not be negative")
	}
	return nil
}
