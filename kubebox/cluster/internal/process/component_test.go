package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var table = NewTable() // there can be only one per process

func shell(t *testing.T, script string) *Component {
	t.Helper()
	return &Component{
		Name:  "shell",
		Log:   filepath.Join(t.TempDir(), "log"),
		Table: table,
		Spec:  func() Spec { return Spec{Path: "/bin/sh", Args: []string{"-c", script}} },
	}
}

func TestComponentIsStoppedAndStartedAgain(t *testing.T) {
	c := shell(t, "exec sleep 100")
	c.Died = func(s Status) { t.Errorf("a requested exit was reported: %+v", s) }
	for _, action := range []string{"start", "stop", "start", "pause", "resume", "restart", "kill"} {
		if err := c.Do(action); err != nil {
			t.Fatal(action, err)
		}
	}
	if s := c.Status(); s.State != Killed || s.Pid != 0 {
		t.Errorf("got %+v", s)
	}
	if err := c.Stop(); err == nil {
		t.Error("stopping a component that is not running: got no error")
	}
	if err := c.Do("dance"); err == nil || !strings.Contains(err.Error(), Actions) {
		t.Errorf("got %v", err)
	}
}

func TestPausedComponentCanBeStopped(t *testing.T) {
	c := shell(t, "exec sleep 100")
	for _, action := range []string{"start", "pause", "stop"} {
		if err := c.Do(action); err != nil {
			t.Fatal(action, err)
		}
	}
}

func TestUnexpectedExitIsReportedWithTheEndOfTheLog(t *testing.T) {
	c := shell(t, "echo cannot open the door; exit 4")
	died := make(chan Status, 1)
	c.Died = func(s Status) { died <- s }
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-died:
		if s.State != Failed || !strings.Contains(s.Cause, "exited with status 4") || !strings.Contains(s.Cause, "cannot open the door") {
			t.Errorf("got %+v", s)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the exit was not reported")
	}
}

func TestProcessReportsItsStatus(t *testing.T) {
	p, err := table.Start(Spec{Path: "/bin/sh", Args: []string{"-c", "kill -TERM $$"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("got %v", s)
	}
	p.Signal(syscall.SIGKILL, true) // must not reach a process that has reused the PID
	if _, err := table.Start(Spec{Path: "/no/such/program"}); err == nil {
		t.Error("starting a missing program: got no error")
	}
}

func TestTailReturnsTheEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	text := strings.Repeat(strings.Repeat("x", 100)+"\n", 1000) + "a\nb\nc\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Tail(file, 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := Tail(file+".none", 2); got != "" {
		t.Errorf("got %q", got)
	}
}
