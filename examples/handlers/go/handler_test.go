package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"akri.sh/akri/discovery/handlertest"
)

func TestConformance(t *testing.T) {
	directory := t.TempDir()
	create := func(name string) error { return os.WriteFile(filepath.Join(directory, name), nil, 0o600) }
	if err := create("a"); err != nil {
		t.Fatal(err)
	}
	handlertest.Run(t, handler{interval: 10 * time.Millisecond}, handlertest.Case{
		Details:    "directory: " + directory,
		Invalid:    []string{"", "directory: relative", "dir: /tmp", "directory: [/tmp]"},
		MinDevices: 1,
		Change:     func(context.Context) error { return create("b") },
	})
}

func TestMissingDirectory(t *testing.T) {
	handlertest.Run(t, handler{interval: 10 * time.Millisecond}, handlertest.Case{Details: "directory: /nowhere"})
}
