package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A log that cannot be read ends every measurement that follows it.
func TestFollowLogRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(broken, []byte("\n"+applied+"\n{\"verb\":}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, want := range map[string]string{
		broken: "parse a line of the audit log: invalid character '}'",
		dir:    "read " + dir + ": is a directory",
	} {
		b := &bench{log: followLog(t.Context(), path)}
		waits := map[string]func() error{
			"settled":   func() error { _, err := b.awaitSettled(t.Context(), 0, "bench", 1); return err },
			"departure": func() error { _, err := b.awaitDeparture(t.Context(), 0, "bench", 1); return err },
			"quiet":     func() error { _, err := b.log.awaitQuiet(t.Context(), 0, "", time.Hour); return err },
		}
		for name, wait := range waits {
			t.Run(name, func(t *testing.T) { expectError(t, wait(), want) })
		}
	}
}

func TestAwaitQuiet(t *testing.T) {
	names := func(requests []auditLine) string {
		var all []string
		for _, r := range requests {
			all = append(all, r.String())
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	// One request per second: three writes of the controller, and then only its reads,
	// the renewal of leases and another agent's writes.
	lines := []auditLine{
		{Agent: controllerAgent, Verb: "patch", Resource: "a"}, {Agent: controllerAgent, Verb: "create", Resource: "b"},
		{Agent: controllerAgent, Verb: "delete", Resource: "c"}, {Agent: controllerAgent, Verb: "get", Resource: "d"},
		{Agent: "kube-controller-manager", Verb: "update", Resource: "leases"}, {Agent: "bare", Verb: "patch", Resource: "e"},
		{Agent: controllerAgent, Verb: "watch", Resource: "f"}, {Agent: controllerAgent, Verb: "list", Resource: "g"},
	}
	cases := map[string]struct {
		agent    string
		quietFor time.Duration
		took     time.Duration
		want     string
	}{
		// The last write is read within 20 ms of the second in which it is sent.
		"the controller":   {controllerAgent, 3 * time.Second, 5 * time.Second, "create b, delete c, get d, patch a"},
		"all but leases":   {"", 4 * time.Second, 9 * time.Second, "create b, delete c, get d, list g, patch a, patch e, watch f"},
		"nothing to wait":  {controllerAgent, 0, 0, "patch a"},
		"an agent at rest": {"other", 2 * time.Second, 2 * time.Second, ""},
		"another's reads":  {"bare", 6500 * time.Millisecond, 11 * time.Second, "patch e"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &auditLog{requests: []auditLine{{Agent: controllerAgent, Verb: "patch", Resource: "before the mark"}, lines[0]}}
				go func() {
					for _, line := range lines[1:] {
						sleep(t.Context(), time.Second)
						log.mu.Lock()
						log.requests = append(log.requests, line)
						log.mu.Unlock()
					}
				}()
				began := time.Now()
				got, err := log.awaitQuiet(t.Context(), 1, c.agent, c.quietFor)
				if took := time.Since(began).Truncate(time.Second); err != nil || names(got) != c.want || took != c.took {
					t.Errorf("got %s after %v, %v, want %s after %v", names(got), took, err, c.want, c.took)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := (&auditLog{}).awaitQuiet(ctx, 0, "", time.Hour)
	expectError(t, err, "context canceled")
}

func TestWrites(t *testing.T) {
	var all []auditLine
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch", ""} {
		all = append(all, auditLine{Verb: verb})
	}
	if got := writes(all); !slices.Equal(got, all[:5]) {
		t.Errorf("got %v, want the first five of %v", got, all)
	}
	// A code from 400 on is a failure.
	got := tallyOutcomes([]auditLine{{Verb: "get", Resource: "a", Code: 399}, {Verb: "get", Resource: "a", Code: 400}})
	if len(got) != 2 || got["get a"] != 1 || got["get a (400)"] != 1 {
		t.Errorf("outcomes: got %v", got)
	}
}
