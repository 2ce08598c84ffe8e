package observer

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	monitor "akri.sh/akri/agent/health"
)

// TestHealth checks that an outage is logged once, with its cause and a remedy, that a
// restart of the kubelet is no outage, and that the metric shows the state.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		h := &health{log: slog.New(slog.NewTextHandler(&log, nil))}
		refused := errors.New("connection refused")
		expect := func(when, state string, warnings int) {
			t.Helper()
			if got := h.state(state != syncing); got != state {
				t.Errorf("%s: state %s, want %s", when, got, state)
			}
			if got := strings.Count(log.String(), "level=WARN"); got != warnings {
				t.Errorf("%s: %d warnings, want %d\n%s", when, got, warnings, log.String())
			}
		}
		expect("before the first pods", syncing, 0)
		for range 5 {
			h.readList(refused)
			time.Sleep(time.Second)
		}
		expect("during a restart of the kubelet", synced, 0)
		h.readList(nil)
		for range 90 {
			h.readList(refused)
			time.Sleep(time.Second)
		}
		expect("during an outage", failing, 1)
		for _, part := range []string{"connection refused", "remedy="} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the warning does not contain %q: %s", part, log.String())
			}
		}
		h.readList(nil)
		expect("after the outage", synced, 1)
		if !strings.Contains(log.String(), "can be read again") {
			t.Errorf("the end of the outage was not logged: %s", log.String())
		}
	})
}

// TestAccountingIsStuck checks that the agent is restarted if the kubelet does not show the
// slots in use for a long time, but not because of the API server.
func TestAccountingIsStuck(t *testing.T) {
	refused := errors.New("connection refused")
	for name, test := range map[string]struct {
		observe func(h *health)
		stuck   bool
	}{
		"the kubelet's list works":       {func(h *health) { h.readList(nil) }, false},
		"the kubelet's list fails":       {func(h *health) { h.readList(refused) }, true},
		"the API server does not answer": {func(h *health) { h.readList(nil); h.readPods(refused) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var loops monitor.Monitor
				h := &health{log: slog.New(slog.DiscardHandler), loop: loops.Loop("accounting", 10*time.Minute)}
				during := func(what string, d time.Duration, observe func(*health), stuck bool) {
					t.Helper()
					for range int(d / (10 * time.Second)) {
						observe(h)
						time.Sleep(10 * time.Second)
					}
					if err := loops.Check(); (err != nil) != stuck {
						t.Errorf("%s: %v, want stuck = %t", what, err, stuck)
					}
				}
				works := func(h *health) { h.readList(nil) }
				during("for nine minutes", 9*time.Minute, test.observe, false)
				during("for eleven minutes", 2*time.Minute, test.observe, test.stuck)
				during("after it", 10*time.Second, works, false)
				during("again, for nine minutes", 9*time.Minute, test.observe, false)
			})
		})
	}
}
