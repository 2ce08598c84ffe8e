package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DirVariable is the environment variable that names the directory of executables
// to use instead of bin/k8s in the repository.
const DirVariable = "AKRI_K8S_BIN"

// DefaultDir returns the directory of executables to use by default: that of the
// requested versions.
func DefaultDir() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := Root()
	if err != nil {
		return "", fmt.Errorf("%w: or set %s to the directory of executables", err, DirVariable)
	}
	return dirFor(root, Requested()), nil
}

// dirFor returns the directory of the executables of some versions, unless
// [DirVariable] names another.
func dirFor(root string, versions Versions) string {
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir
	}
	return filepath.Join(root, binDir, versions.dir())
}

// binDir is the directory below the repository's root that holds all executables.
const binDir = "bin"

// moduleDir is the directory of this package's module below the repository's root.
const moduleDir = "kubebox"

// Root returns the repository's root: the directory with kubebox/kubernetes/go.mod
// at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, moduleDir, "kubernetes", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not inside the Akri repository")
		}
		dir = filepath.Dir(dir)
	}
}

// MissingError reports that executables have not been built.
type MissingError struct {
	Dir   string
	Files []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s lacks %s: run %s", e.Dir, strings.Join(e.Files, ", "), Requested().makeTarget())
}

// Check returns a *MissingError unless dir has everything that a control plane needs
// and, if nodes is true, everything that nodes need.
func Check(dir string, nodes bool) error {
	want := slices.Clone(programs) // links to kubenode
	if nodes {
		want = append(want, coredns, "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni/ptp", "cni/host-local", pauseArchive)
	}
	missing := &MissingError{Dir: dir}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing.Files = append(missing.Files, name)
		}
	}
	if len(missing.Files) > 0 {
		return missing
	}
	return nil
}

// Images lists the image archives that All has built in dir.
func Images(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, imageDir, "*.tar"))
}
