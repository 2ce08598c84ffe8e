package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/supervisor"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// openServed returns a cluster whose supervisor is a handler in this process.
func openServed(t *testing.T, handle wire.Handler) *Cluster {
	t.Helper()
	dir := t.TempDir()
	if err := running(t).write(dir); err != nil {
		t.Fatal(err)
	}
	if err := wire.Serve(t.Context(), supervisor.ControlSocket(dir), handle); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// respond returns a handler with one response.
func respond(response wire.Response) wire.Handler {
	return func(context.Context, wire.Request, []*os.File) (wire.Response, []*os.File) { return response, nil }
}

func TestUnknownNodesAreRejected(t *testing.T) {
	c := openServed(t, respond(wire.Response{}))
	const want = `there is no node "node3" in this cluster, only ["node1" "node2"]`
	for name, request := range map[string]func() error{
		"Do":     func() error { return c.Do(t.Context(), Kill, "node3/kubelet") },
		"Exec":   func() error { return c.Exec(t.Context(), Command{Node: "node3", Args: []string{"true"}}) },
		"Output": func() error { _, err := c.Output(t.Context(), "node3", "true"); return err },
		"Dial":   func() error { _, err := c.Dial(t.Context(), "node3", "tcp", "127.0.0.1:80"); return err },
		"Listen": func() error { _, err := c.Listen(t.Context(), "node3", "tcp", "127.0.0.1:80"); return err },
	} {
		if err := request(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestErrorOfACommandIsBounded(t *testing.T) {
	c := openServed(t, func(_ context.Context, _ wire.Request, files []*os.File) (wire.Response, []*os.File) {
		_, _ = io.WriteString(files[2], strings.Repeat("x", 5000)+"end\n")
		return wire.Response{Exit: 3}, nil
	})
	exit, ok := errors.AsType[*ExitError](c.Exec(t.Context(), Command{Args: []string{"cat"}}))
	if !ok || exit.Status != 3 || len(exit.Output) != 2048 || !strings.HasSuffix(exit.Output, "xend") {
		t.Errorf("got %+v", exit)
	}
	if text := exit.Error(); !strings.HasPrefix(text, `["cat"] exited with status 3: xxx`) {
		t.Errorf("got %s", text)
	}
}

// TestOutputOfLeftProcessesIsNotAwaited keeps a command's output open after its exit.
func TestOutputOfLeftProcessesIsNotAwaited(t *testing.T) {
	c := openServed(t, func(_ context.Context, _ wire.Request, files []*os.File) (wire.Response, []*os.File) {
		kept, err := syscall.Dup(int(files[1].Fd()))
		if err != nil {
			return wire.Response{Error: err.Error()}, nil
		}
		t.Cleanup(func() { syscall.Close(kept) })
		_, _ = io.WriteString(files[1], "written")
		return wire.Response{}, nil
	})
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- c.Exec(t.Context(), Command{Args: []string{"daemon"}, Stdout: &out}) }()
	select {
	case err := <-done:
		if err != nil || out.String() != "written" {
			t.Errorf("got %q, %v", out.String(), err)
		}
	case <-time.After(5 * drainTimeout):
		t.Error("timed out: Exec waits for a process that the command left behind")
	}
}

func TestFailedKubectlReportsItsErrors(t *testing.T) {
	bin := t.TempDir()
	writeFile(t, filepath.Join(bin, "kubectl"), "#!/bin/sh\necho no server >&2; exit 1\n")
	c := &Cluster{dir: t.TempDir(), state: state{Bin: bin}}
	_, err := c.Kubectl(t.Context(), "get", "pods")
	if err == nil || err.Error() != `kubectl ["get" "pods"]: exit status 1: no server` {
		t.Errorf("got %v", err)
	}
}
