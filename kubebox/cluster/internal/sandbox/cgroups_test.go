package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// unified fakes the files of a v2 hierarchy. They show what is written, but not how a
// kernel would react.
func unified(t *testing.T, controllers, delegated string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"", "akri-x", "akri-x/node1"} {
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": delegated} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestControllersAreDelegatedInV2(t *testing.T) {
	root := unified(t, "cpu memory", "cpu")
	if err := makeUnified(root, "akri-x/node1"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "akri-x", "akri-x/node1"} {
		got, err := os.ReadFile(filepath.Join(root, dir, "cgroup.subtree_control"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(got)) != "+memory" {
			t.Errorf("%q: wrote %s, want only memory, as cpu is already delegated", dir, got)
		}
	}
}

func TestOnlyTheControllersOfTheKubeletAreRequired(t *testing.T) {
	for controller, required := range map[string]bool{"cpu": true, "cpuset": true, "memory": true, "pids": true, "hugetlb": false} {
		root := unified(t, controller, "")
		file := filepath.Join(root, "cgroup.subtree_control")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/proc/version", file); err != nil { // not even root can write it
			t.Fatal(err)
		}
		err := makeUnified(root, "akri-x")
		if !required {
			if err != nil {
				t.Errorf("%s: %v", controller, err)
			}
			continue
		}
		want := "the kubelet needs the " + controller + " controller, which " + root +
			" does not delegate (inside a container, first move its processes to a child cgroup): "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", controller, err, want)
		}
	}
}

func TestHierarchiesAreFoundInTheListOfMounts(t *testing.T) {
	const mounts = `24 1 0:22 / /proc rw,nosuid - proc proc rw
30 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
33 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 / /mnt/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
a line of another format
`
	got, err := mountedHierarchies(strings.NewReader(mounts))
	if want := []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	_, err = mountedHierarchies(strings.NewReader("24 1 0:22 / /proc rw,nosuid - proc proc rw\n"))
	if err == nil || err.Error() != "no cgroup hierarchy is mounted below /sys/fs/cgroup" {
		t.Errorf("without a hierarchy: %v", err)
	}
}

func TestCgroupsInUseAreAwaitedUntilTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		exiting := func() ([]string, error) {
			if time.Since(began) < 3*time.Second {
				return []string{"/a", "/b"}, nil
			}
			return nil, nil
		}
		if err := removeUntil(2*time.Second, exiting); err == nil || err.Error() != "cgroups still in use: /a, /b" {
			t.Errorf("after the timeout: %v", err)
		}
		if err := removeUntil(2*time.Second, exiting); err != nil || time.Since(began) > 4*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		failure := errors.New("no hierarchy")
		if err := removeUntil(time.Hour, func() ([]string, error) { return []string{"/a"}, failure }); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
	})
}
