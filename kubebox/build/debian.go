package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unpack unpacks Debian packages into a directory below the work directory.
func (b *builder) unpack(ctx context.Context, name string, packages ...string) (root string, err error) {
	root = b.work(name)
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	return root, UnpackDebian(ctx, root, packages...)
}

// UnpackDebian downloads Debian packages and unpacks them into one directory. Nothing is
// installed: scripts do not run, and dependencies must be listed, too.
func UnpackDebian(ctx context.Context, dir string, packages ...string) error {
	if err := requirePrograms("apt-get", "dpkg"); err != nil {
		return err
	}
	archives, err := os.MkdirTemp("", "akri-debian-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(archives)
	err = withLists(ctx, func() error { return Run(ctx, archives, "apt-get", append([]string{"download"}, packages...)...) })
	if err != nil {
		return err
	}
	found, _ := filepath.Glob(filepath.Join(archives, "*.deb"))
	if len(found) != len(packages) {
		return fmt.Errorf("apt-get download %q: %d packages were downloaded", packages, len(found))
	}
	for _, archive := range found {
		if err := Run(ctx, archives, "dpkg", "-x", archive, dir); err != nil {
			return err
		}
	}
	return nil
}

// MissingPackages returns the packages that apt-get would install for a package: itself
// and its dependencies, without those that this machine has.
func MissingPackages(ctx context.Context, name string) (packages []string, err error) {
	if err := requirePrograms("apt-get"); err != nil {
		return nil, err
	}
	err = withLists(ctx, func() error {
		cmd := exec.CommandContext(ctx, "apt-get", "install", "--simulate", "--no-install-recommends", name)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("apt-get install --simulate %s: %w: %s", name, err, bytes.TrimSpace(stderr.Bytes()))
		}
		packages = simulatedInstalls(out)
		return nil
	})
	return packages, err
}

// withLists calls apt-get, and once more after an update if it fails: the lists of packages
// may be missing or old.
func withLists(ctx context.Context, call func() error) error {
	if call() == nil {
		return nil
	}
	return errors.Join(Run(ctx, ".", "apt-get", "update", "--quiet"), call())
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

// Run runs a program in a directory. Its error includes the output.
func Run(ctx context.Context, dir, name string, args ...string) error {
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
