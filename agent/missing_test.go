package agent

import (
	"testing"
	"time"

	v0 "akri.sh/akri/api/v0"
)

func TestMissingHandlers(t *testing.T) {
	start := time.Unix(1000, 0)
	type step struct {
		why     string
		seconds int
		change  func(*cachedConfiguration)
		served  bool
		report  bool
		again   int // seconds; 0: never
	}
	nothing := func(*cachedConfiguration) {}
	reported := func(c *cachedConfiguration) {
		c.Status.DiscoveryFailures = []v0.DiscoveryFailure{{Node: "a", Handler: "h", Message: v0.MessageHandlerMissing}}
	}
	for name, steps := range map[string][]step{
		"a handler that never registers": {
			{"it may be starting", 0, nothing, false, false, 30},
			{"an event does not prolong the delay", 20, nothing, false, false, 30},
			{"it is reported", 30, nothing, false, true, 0},
			{"and remains so", 40, reported, false, true, 0},
			{"until it registers", 50, nothing, true, false, 0},
			{"when it leaves, it may be restarting", 60, nothing, false, false, 90},
		},
		"a handler of other nodes": {
			{"nothing is known", 0, nothing, false, false, 30},
			{"another node has found a device", 10, func(c *cachedConfiguration) { c.discovered = true }, false, false, 0},
			{"which has left", 60, func(c *cachedConfiguration) { c.discovered = false }, false, false, 0},
			{"another handler", 70, func(c *cachedConfiguration) { c.Spec.DiscoveryHandler.Name = "i" }, false, false, 100},
			{"another Configuration of this name", 80, func(c *cachedConfiguration) { c.UID = "2" }, false, false, 110},
		},
		"many nodes": {
			{"they report it", 0, func(c *cachedConfiguration) { c.otherMissing = maxMissing }, false, false, 0},
			{"nothing is added", 40, nothing, false, false, 0},
			{"there is room", 50, func(c *cachedConfiguration) { c.otherMissing-- }, false, true, 0},
			{"what is there stays", 60, func(c *cachedConfiguration) { c.otherMissing++; reported(c) }, false, true, 0},
		},
	} {
		m := newMissing(missingDelay)
		c := &cachedConfiguration{}
		c.Namespace, c.Name, c.UID, c.Spec.DiscoveryHandler.Name = "ns", "cam", "1", "h"
		for _, step := range steps {
			step.change(c)
			report, next := m.observe(c, step.served, start.Add(time.Duration(step.seconds)*time.Second))
			again := 0
			if !next.IsZero() {
				again = int(next.Sub(start).Seconds())
			}
			if report != step.report || again != step.again {
				t.Errorf("%s: %s: reported: %t, again at %d; want %t, %d", name, step.why, report, again, step.report, step.again)
			}
		}
		if m.forget(keyOf(&c.Configuration)); len(m.handlers) > 0 {
			t.Errorf("%s: %v is not forgotten", name, m.handlers)
		}
	}
}
