package build

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unpack downloads Debian packages and unpacks them into one directory below the work
// directory. Nothing is installed.
func (b *builder) unpack(ctx context.Context, name string, packages ...string) (root string, err error) {
	if err := requirePrograms("apt-get", "dpkg"); err != nil {
		return "", err
	}
	dir := b.work(name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := run(ctx, dir, "apt-get", append([]string{"download"}, packages...)...); err != nil {
		return "", err
	}
	archives, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(archives) != len(packages) {
		return "", fmt.Errorf("apt-get download %q: %d packages were downloaded", packages, len(archives))
	}
	root = filepath.Join(dir, "root")
	for _, archive := range archives {
		if err := run(ctx, dir, "dpkg", "-x", archive, root); err != nil {
			return "", err
		}
	}
	return root, nil
}

// MissingPackages returns the packages that apt-get would install for a package: itself
// and its dependencies, without those that this machine has.
func MissingPackages(ctx context.Context, name string) ([]string, error) {
	if err := requirePrograms("apt-get"); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "apt-get", "install", "--simulate", "--no-install-recommends", name)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("apt-get install --simulate %s: %w: %s", name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return simulatedInstalls(out), nil
}

// simulatedInstalls returns the packages in the output of apt-get install --simulate,
// which has a line "Inst NAME (VERSION ...)" for each.
func simulatedInstalls(output []byte) []string {
	var packages []string
	for w := bufio.NewScanner(bytes.NewReader(output)); w.Scan(); {
		if rest, ok := strings.CutPrefix(w.Text(), "Inst "); ok {
			name, _, _ := strings.Cut(rest, " ")
			packages = append(packages, name)
		}
	}
	return packages
}

// run runs a program; its error includes the output.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// requirePrograms returns an error unless all programs are on the PATH.
func requirePrograms(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not installed", p)
		}
	}
	return nil
}
