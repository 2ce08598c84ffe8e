package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
)

// Python returns the environment in which python3 finds the requirements, such as
// "WSDiscovery==2.1.2". Give each requirement a version.
func Python(t testing.TB, requirements ...string) []string {
	t.Helper()
	dir := unpack(t, "python", requirements, func(ctx context.Context, dir string) error {
		arguments := []string{"-m", "pip", "install", "--quiet", "--no-compile", "--target", dir}
		return build.Run(ctx, dir, "python3", append(arguments, requirements...)...)
	})
	return []string{"PYTHONPATH=" + dir, "PYTHONUNBUFFERED=1"}
}

// Debian returns a directory with the files of Debian packages, which are not installed:
// their scripts do not run, and their dependencies must be listed too. Programs find
// libraries through the environment of [Libraries].
func Debian(t testing.TB, packages ...string) string {
	t.Helper()
	return unpack(t, "debian", packages, func(ctx context.Context, dir string) error {
		return build.UnpackDebian(ctx, dir, packages...)
	})
}

// WithDependencies returns the directory of [Debian] with a package and those of its
// dependencies that this machine lacks.
func WithDependencies(t testing.TB, name string) string {
	t.Helper()
	packages, err := build.MissingPackages(t.Context(), name)
	if err != nil {
		clustertest.Skip(t, fmt.Sprintf("cannot list the dependencies of the debian package %s: %v", name, err))
	}
	return Debian(t, packages...)
}

// Libraries returns the environment in which programs find the libraries below a
// directory of [Debian].
func Libraries(dir string) []string {
	architectures, _ := filepath.Glob(filepath.Join(dir, "usr", "lib", "*-linux-gnu")) // the pattern is valid
	others, _ := filepath.Glob(filepath.Join(dir, "lib", "*-linux-gnu"))
	return []string{"LD_LIBRARY_PATH=" + strings.Join(append(architectures, others...), ":")}
}

// unpack returns the directory with what fetch has written for these names. It fetches
// once for all tests, also of other processes.
func unpack(t testing.TB, kind string, names []string, fetch func(ctx context.Context, dir string) error) string {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	sorted := slices.Sorted(slices.Values(names))
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	dir := filepath.Join(root, "bin", "peers", kind+"-"+hex.EncodeToString(sum[:6]))
	if err := fetchOnce(t.Context(), dir, fetch); err != nil {
		clustertest.Skip(t, fmt.Sprintf("cannot fetch the %s packages %s: %v", kind, strings.Join(sorted, ", "), err))
	}
	return dir
}

// fetchOnce fetches into dir, unless that has been done. A lock makes other processes
// wait, and dir exists only when it is complete.
func fetchOnce(ctx context.Context, dir string, fetch func(ctx context.Context, dir string) error) error {
	unlock, err := build.Lock(ctx, filepath.Dir(dir), nil)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	if err := fetch(ctx, partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Chmod(partial, 0o755); err != nil { // avahi and others give up root's rights
		return err
	}
	return os.Rename(partial, dir)
}
