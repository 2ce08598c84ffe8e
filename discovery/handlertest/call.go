package handlertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery"
)

// patience bounds the waits of a [Call]. No test passes by reaching it.
const patience = time.Minute

// Call is a running call of a handler's Discover.
type Call struct {
	t      testing.TB
	lists  chan []discovery.Device
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid when ended is closed
	// failing means that the test has seen err.
	failing bool
}

// Open calls Discover, which must return the error of its context when the test ends.
func Open(t testing.TB, handler discovery.Handler, request discovery.Request) *Call {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &Call{t: t, lists: make(chan []discovery.Device, 1000), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.err = handler.Discover(ctx, request, func(devices []discovery.Device) error {
			c.lists <- devices
			return nil
		})
	}()
	t.Cleanup(c.Stop)
	return c
}

// Stop ends the call and waits until Discover has returned.
func (c *Call) Stop() {
	c.t.Helper()
	c.cancel()
	select {
	case <-c.ended:
		if !c.failing && !errors.Is(c.err, context.Canceled) {
			c.t.Errorf("Discover returned %v, want the error of its context", c.err)
		}
	case <-time.After(patience):
		c.t.Error("Discover does not return although its context is done")
	}
}

// Err waits until Discover returns by itself, and returns its error.
func (c *Call) Err() error {
	c.t.Helper()
	select {
	case <-c.ended:
		c.failing = true
		return c.err
	case <-time.After(patience):
		c.t.Fatal("Discover does not return an error")
		return nil
	}
}

// Next waits for the next list.
func (c *Call) Next() []discovery.Device {
	c.t.Helper()
	return c.Until("any devices", func([]discovery.Device) bool { return true })
}

// Until waits for a list that the test accepts, and returns it. What is wanted goes into the
// failure.
func (c *Call) Until(wanted string, accept func(devices []discovery.Device) bool) []discovery.Device {
	c.t.Helper()
	var lists [][]string
	for timeout := time.After(patience); ; {
		select {
		case devices := <-c.lists:
			if accept(devices) {
				return devices
			}
			lists = append(lists, IDs(devices))
		case <-c.ended:
			c.failing = true
			c.t.Fatalf("Discover returned %v; want a list with %s, got %q", c.err, wanted, lists)
		case <-timeout:
			c.t.Fatalf("want a list with %s, got %q", wanted, lists)
		}
	}
}

// UntilIDs waits for a list with exactly these ids, and returns it.
func (c *Call) UntilIDs(ids ...string) []discovery.Device {
	c.t.Helper()
	slices.Sort(ids)
	return c.Until(fmt.Sprintf("the ids %q", ids), func(devices []discovery.Device) bool { return slices.Equal(IDs(devices), ids) })
}

// Quiet reports an error if a list was sent that has not been read.
func (c *Call) Quiet() {
	c.t.Helper()
	select {
	case devices := <-c.lists:
		c.t.Errorf("a list was sent although nothing has changed: %q", IDs(devices))
	default:
	}
}

// IDs returns the ids of devices, sorted.
func IDs(devices []discovery.Device) []string {
	var ids []string
	for _, device := range devices {
		ids = append(ids, device.ID)
	}
	slices.Sort(ids)
	return ids
}

// Failures returns the failures that a handler has counted in
// [akri.sh/akri/discovery/monitor.Metrics], by reason.
func Failures(t testing.TB, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "akri_handler_failures_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			counts[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	return counts
}

// Await waits for a condition.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("timed out: %s", what)
		}
	}
}
