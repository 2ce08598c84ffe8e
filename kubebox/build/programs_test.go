package build

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakePrograms makes shell scripts the only programs on the PATH.
func fakePrograms(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// newBuilder returns a builder of this module into a new directory.
func newBuilder(t *testing.T) *builder {
	t.Helper()
	return &builder{progress: &progress{out: io.Discard, began: time.Now()}, dir: t.TempDir(), module: ".."}
}

func assertError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

// TestInterruption checks that a build that was interrupted says so, and is not up to date.
func TestInterruption(t *testing.T) {
	b := newBuilder(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	compile := step{name: "compile", title: "Kubernetes", run: func(context.Context) error {
		cancel(interrupted)
		return errors.New("signal: killed") // as a compiler of a context that ends
	}}
	err := b.perform(ctx, compile)
	if want := "building Kubernetes: interrupted"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if pending, err := b.check(compile); err != nil || pending.current == "" {
		t.Errorf("the step is up to date: %v", err)
	}
}

func TestBuildRequiresTheRepositoryAndValidVersions(t *testing.T) {
	fakePrograms(t, nil)
	assertError(t, All(t.Context(), Options{Dir: t.TempDir()}), "the go command is required: ")
	assertError(t, All(t.Context(), Options{Dir: t.TempDir(), Versions: Versions{Kubernetes: "v1.33.0"}}), "KUBERNETES: v1.33.0: ")
	t.Setenv(KubeletVariable, "latest")
	assertError(t, All(t.Context(), Options{Dir: t.TempDir()}), `KUBELET: "latest": want a complete version`)
	t.Chdir(t.TempDir())
	const outside = "the working directory is not inside the Akri repository"
	if err := All(t.Context(), Options{}); err == nil || err.Error() != outside {
		t.Errorf("got %v", err)
	}
	t.Setenv(DirVariable, "")
	if _, err := DefaultDir(); err == nil || err.Error() != outside+": or set AKRI_K8S_BIN to the directory of executables" {
		t.Errorf("got %v", err)
	}
}

// TestControlPlaneNeedsFewerExecutables checks which are required for nodes alone.
func TestControlPlaneNeedsFewerExecutables(t *testing.T) {
	dir := t.TempDir()
	for _, name := range programs {
		write(t, filepath.Join(dir, name), "")
	}
	if err := Check(dir, false); err != nil {
		t.Errorf("a control plane: %v", err)
	}
	missing, ok := errors.AsType[*MissingError](Check(dir, true))
	want := []string{"coredns", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni/ptp", "cni/host-local", "images/pause.tar"}
	if !ok || missing.Dir != dir || !slices.Equal(missing.Files, want) {
		t.Errorf("nodes: %+v", missing)
	}
}
