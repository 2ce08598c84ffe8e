package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// Unified reports whether the machine has only cgroup v2, as opposed to v1
// hierarchies, possibly with a v2 hierarchy next to them.
func Unified() bool {
	var s unix.Statfs_t
	return unix.Statfs(cgroupRoot, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC
}

// MakeCgroup creates the cgroup name, such as "cluster/node1", in every hierarchy, and
// makes the machine's processors, memory and controllers available in it.
func MakeCgroup(name string) error {
	if Unified() {
		return makeUnified(cgroupRoot, name)
	}
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := root
		for part := range strings.SplitSeq(name, "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("creating a cgroup: %w", err)
			}
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				if err := inherit(parent, dir, file); err != nil {
					return err
				}
			}
			if err := setShares(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// shares is the share of the processor that all Pods of a cluster have together, if it is
// contended: ten times that of a process outside, such as a compiler. With the default,
// the Pods of a whole cluster have as much as one such process.
const shares = "10240"

// setShares sets the share of a cgroup, if it is in the cpu hierarchy.
func setShares(dir string) error {
	file := filepath.Join(dir, "cpu.shares")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.WriteFile(file, []byte(shares), 0o644)
}

// inherit copies a cpuset setting from the parent. In v1 it is initially empty, and no
// process can join the cgroup until it is set.
func inherit(parent, dir, file string) error {
	value, err := os.ReadFile(filepath.Join(parent, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not the cpuset hierarchy
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), value, 0o644)
}

// makeUnified creates the cgroup name in a v2 hierarchy.
func makeUnified(root, name string) error {
	dir := root
	for part := range strings.SplitSeq(name, "/") {
		if err := delegate(dir); err != nil {
			return err
		}
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
		if err := setWeight(dir); err != nil {
			return err
		}
	}
	return delegate(dir)
}

// setWeight does in a v2 hierarchy what setShares does in v1, where 1024 corresponds to
// 100.
func setWeight(dir string) error {
	file := filepath.Join(dir, "cpu.weight")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.WriteFile(file, []byte("1000"), 0o644)
}

// delegate makes all controllers of dir available to the cgroups below it.
func delegate(dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	delegated, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(have)) {
		if slices.Contains(strings.Fields(string(delegated)), controller) {
			continue
		}
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
		if err != nil && slices.Contains([]string{"cpu", "cpuset", "memory", "pids"}, controller) {
			return fmt.Errorf("the kubelet needs the %s controller, which %s does not delegate "+
				"(inside a container, first move its processes to a child cgroup): %w", controller, dir, err)
		}
	}
	return nil
}

// RemoveCgroup removes the cgroup name and everything below it from every hierarchy.
// It retries until timeout, because its processes may still be exiting.
func RemoveCgroup(name string, timeout time.Duration) error {
	return removeUntil(timeout, func() ([]string, error) { return removeOnce(name) })
}

// removeUntil calls remove until it leaves no directories, or until timeout.
func removeUntil(timeout time.Duration, remove func() (left []string, err error)) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		left, err := remove()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cgroups still in use: %s", strings.Join(left, ", "))
		}
	}
}

// Cgroups returns the directories of the cgroup name.
func Cgroups(name string) ([]string, error) {
	roots := []string{cgroupRoot}
	if !Unified() {
		var err error
		if roots, err = hierarchies(); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, root := range roots {
		if dir := filepath.Join(root, name); isDir(dir) {
			found = append(found, dir)
		}
	}
	return found, nil
}

// removeOnce tries to remove the cgroup once, and returns the directories that are left.
func removeOnce(name string) (left []string, err error) {
	tops, err := Cgroups(name)
	for _, top := range tops {
		if !removeTree(top) {
			left = append(left, top)
		}
	}
	return left, err
}

// removeTree removes directories, deepest first, and reports whether dir is gone. The
// files in a cgroup's directory disappear with it.
func removeTree(dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeTree(filepath.Join(dir, e.Name()))
		}
	}
	err := syscall.Rmdir(dir)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// hierarchies returns the mount points of the v1 hierarchies, and of a v2 hierarchy
// next to them.
func hierarchies() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mountedHierarchies(f)
}

// mountedHierarchies returns the mount points of the hierarchies in a list of mounts.
func mountedHierarchies(mounts io.Reader) ([]string, error) {
	var roots []string
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 1 || !strings.HasPrefix(kind[0], "cgroup") {
			continue
		}
		if root := fields[4]; filepath.Dir(root) == cgroupRoot && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("no cgroup hierarchy is mounted below %s", cgroupRoot)
	}
	return roots, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
