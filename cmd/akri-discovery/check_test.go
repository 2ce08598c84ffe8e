package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck checks the handler debugEcho with the command check, over a socket.
func TestCheck(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "akri-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad := write("good.yaml", "descriptions: [foo0, foo1]"), write("bad.yaml", "discriptions: [foo0]")
	run := func(ctx context.Context, arguments ...string) (string, error) {
		root := newRoot(func(string) string { return "" })
		var out bytes.Buffer
		root.SetArgs(arguments)
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		err := root.ExecuteContext(ctx)
		return out.String(), err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := run(ctx, "debug-echo", "--shared=true", "--discovery-handlers-dir="+dir)
		ended <- err
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	out, err := run(t.Context(), "check", "--dir="+dir, "--details-file="+good, "--invalid-details-file="+bad, "--min-devices=2",
		"--observe=100ms")
	if err != nil || strings.Contains(out, "FAIL") || strings.Count(out, "pass") != 15 {
		t.Errorf("%v\n%s", err, out)
	}
	socket := filepath.Join(dir, "debugEcho.sock")
	out, err = run(t.Context(), "check", "--endpoint="+socket, "--details-file="+bad, "--observe=100ms")
	if err == nil || !strings.Contains(err.Error(), "breaks rules") || !strings.Contains(out, "unknown key; did you mean descriptions?") {
		t.Errorf("wrong details: %v\n%s", err, out)
	}
	for want, arguments := range map[string][]string{
		"either --endpoint or --dir": {"check"},
		"--details-file: open":       {"check", "--endpoint=" + socket, "--details-file=/nowhere"},
		"want NAME=VALUE":            {"check", "--endpoint=" + socket, "--property=secret"},
	} {
		if _, err := run(t.Context(), arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", arguments, err, want)
		}
	}
}
