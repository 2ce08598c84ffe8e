package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSumOf(t *testing.T) {
	const text = `# TYPE workqueue_depth gauge
workqueue_depth{name="a"} 1
workqueue_depth{name="b"} 2
# TYPE go_memstats_heap_inuse_bytes gauge
go_memstats_heap_inuse_bytes 1.5e+06
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{result="success"} 7
`
	for name, want := range map[string]float64{
		"workqueue_depth": 3, "go_memstats_heap_inuse_bytes": 1.5e6, "controller_runtime_reconcile_total": 7,
	} {
		if got, err := sumOf(strings.NewReader(text), name); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	for _, bad := range []string{text, "404 page not found\n"} { // a metric that is missing is not 0
		if _, err := sumOf(strings.NewReader(bad), "workqueue"); err == nil {
			t.Error("got no error for a metric that is missing")
		}
	}
}

// A program that has exited by itself has sent no requests and is no figure.
func TestExited(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("first\nthe cause\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"exit 3":         "akri-agent exited by itself: exit status 3: the cause",
		"exec sleep 600": "",
	} {
		p := &program{name: agentName, command: exec.Command("sh", "-c", script), log: log, exited: make(chan struct{})}
		if err := p.command.Start(); err != nil {
			t.Fatal(err)
		}
		wait := func() { _ = p.command.Wait(); close(p.exited) }
		if want != "" {
			wait()
		} else if used, err := p.usage(); err != nil || used.peak <= 0 || used.peak < used.memory {
			t.Errorf("usage: got %+v, %v", used, err)
		}
		if want == "" {
			go wait()
		}
		got := ""
		if err := p.end(syscall.SIGTERM); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("%s: a second end: %v", script, err)
		}
	}
}
