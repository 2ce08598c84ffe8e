package debug_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"akri.sh/akri/agent/debug"
)

func TestRecentKeepsWarningsAndErrors(t *testing.T) {
	var recent debug.Recent
	var out bytes.Buffer
	log := slog.New(recent.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	log.Info("Agent started")
	log.With("node", "n").WithGroup("slot").Warn("Could not write the slots", "number", 3, "err", errors.New("timeout"))
	log.Error("Out of slots")
	log.With("node", "n").WithGroup("slot").Warn("Could not write the slots", "number", 3, "err", errors.New("timeout"))
	got := recent.Records()
	if len(got) != 2 {
		t.Fatalf("got %+v, want two records", got)
	}
	again, once := got[0], got[1]
	if again.Level != "WARN" || again.Message != "Could not write the slots" || again.Count != 2 || again.Last.Before(again.First) ||
		again.Details != "node=n slot.number=3 slot.err=timeout" {
		t.Errorf("the latest is %+v", again)
	}
	if once.Level != "ERROR" || once.Message != "Out of slots" || once.Details != "" || once.Count != 1 {
		t.Errorf("the first is %+v", once)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "Out of slots") {
		t.Errorf("the level of the log is not respected:\n%s", text)
	}
}

// One error with many different details does not displace the others, and the details
// of an error are bounded.
func TestRecentIsBounded(t *testing.T) {
	var recent debug.Recent
	log := slog.New(recent.Handler(slog.DiscardHandler))
	log.Error("Cannot register")
	for i := range 1000 {
		log.Warn("Stream ended", "number", i, "err", strings.Repeat("x", 10_000))
	}
	log.Error("Cannot listen")
	got := recent.Records()
	if len(got) > 50 || len(got) < 40 {
		t.Errorf("%d records are kept", len(got))
	}
	size := 0
	for _, record := range got {
		size += len(record.Message) + len(record.Details)
	}
	if size > 60<<10 {
		t.Errorf("the records have %d bytes", size)
	}
	if got[0].Message != "Cannot listen" || got[len(got)-1].Message != "Cannot register" || !strings.HasPrefix(got[1].Details, "number=999 ") {
		t.Errorf("the records are %s", fmt.Sprint(got[0].Message, got[1].Details[:20], got[len(got)-1].Message))
	}
}

func TestNilRecentIsEmpty(t *testing.T) {
	var recent *debug.Recent
	if got := recent.Records(); got != nil {
		t.Error(got)
	}
}
