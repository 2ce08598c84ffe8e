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
}

func TestActionsThatDoNotFitTheState(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		actions string // all but the last succeed
		want    string
	}{
		{"not started", "stop", "shell is not running"},
		{"not started", "kill", "shell is not running"},
		{"not started", "restart", "shell is not running"},
		{"not started", "pause", "shell is not running"},
		{"not started", "resume", "shell is not paused"},
		{"running", "start start", "shell is already running"},
		{"running", "start resume", "shell is not paused"},
		{"paused", "start pause start", "shell is already paused"},
		{"paused", "start pause pause", "shell is not running"},
		{"resumed", "start pause resume resume", "shell is not paused"},
		{"stopped", "start stop stop", "shell is not running"},
		{"stopped while paused", "start pause stop resume", "shell is not paused"},
		{"killed", "start kill pause", "shell is not running"},
		{"unknown", "dance", `unknown action "dance" for shell: use one of start, stop, restart, kill, pause, resume`},
		{"without an action", "start ", `unknown action "" for shell: use one of start, stop, restart, kill, pause, resume`},
	} {
		c := shell(t, "exec sleep 100")
		actions := strings.Split(tc.actions, " ")
		for i, action := range actions {
			switch err := c.Do(action); {
			case i < len(actions)-1 && err != nil:
				t.Fatalf("%s: %s: %v", tc.reason, action, err)
			case i == len(actions)-1 && (err == nil || err.Error() != tc.want):
				t.Errorf("%s: %s: got %v, want %s", tc.reason, tc.actions, err, tc.want)
			}
		}
		_ = c.Kill() // it may have been stopped
	}
}

// TestStopKillsAfterTheGracePeriod stops a program that ignores SIGTERM.
func TestStopKillsAfterTheGracePeriod(t *testing.T) {
	c := shell(t, "trap '' TERM; echo ready; while :; do sleep 1; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := c.process
	for deadline := time.Now().Add(10 * time.Second); Tail(c.Log, 1) != "ready"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out: the program does not start")
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop(50 * time.Millisecond) }()
	select {
	case err := <-stopped:
		if s := p.Status(); err != nil || s.Signal() != syscall.SIGKILL {
			t.Errorf("%v, and the program %s", err, describe(s))
		}
	case <-time.After(10 * time.Second):
		p.Signal(syscall.SIGKILL, true)
		t.Error("the program was not killed")
	}
}

// TestClosedTableStartsNothing uses a table that does not reap, as there is another.
func TestClosedTableStartsNothing(t *testing.T) {
	closed := &Table{children: map[int]*Process{}, starts: make(chan func())}
	go closed.fork()
	defer close(closed.starts)
	closed.KillAll()
	c := shell(t, "echo started")
	c.Table = closed
	if err := c.Start(); err == nil || err.Error() != "starting shell: all processes are being terminated" {
		t.Errorf("got %v", err)
	}
	if s := c.Status(); s.State != Starting || s.Pid != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestUnexpectedExitIsReportedWithTheEndOfTheLog(t *testing.T) {
	for _, tc := range []struct{ script, want string }{
		{"echo cannot open the door; exit 4", "exited with status 4; the end of LOG:\ncannot open the door"},
		{"exit 5", "exited with status 5"},
		{"kill -KILL $$", "terminated by signal 9 (killed)"},
		{
			"i=1; while [ $i -le 20 ]; do echo $i; i=$((i+1)); done; exit 6",
			"exited with status 6; the end of LOG:\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20",
		},
	} {
		c := shell(t, tc.script)
		died := make(chan Status, 1)
		c.Died = func(s Status) { died <- s }
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-died:
			if want := strings.Replace(tc.want, "LOG", c.Log, 1); s.State != Failed || s.Cause != want {
				t.Errorf("%s\n got %+v\nwant %s", tc.script, s, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the exit was not reported")
		}
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
