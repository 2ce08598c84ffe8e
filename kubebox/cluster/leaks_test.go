package cluster_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
)

// machine is the state of this machine that a cluster must not change.
type machine struct {
	mounts     string
	interfaces []string
	settings   string
	rules      string // of the firewall
}

// snapshotMachine records the current state.
func snapshotMachine(t *testing.T) machine {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	m := machine{mounts: string(mounts)}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		m.interfaces = append(m.interfaces, i.Name)
	}
	names := []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"}
	for _, pattern := range []string{"net/ipv4/*", "net/ipv4/conf/*/*", "net/bridge/*", "net/netfilter/*", "net/*"} {
		more, _ := filepath.Glob("/proc/sys/" + pattern)
		for _, file := range more {
			names = append(names, strings.TrimPrefix(file, "/proc/sys/"))
		}
	}
	for _, name := range names {
		if name == "net/netfilter/nf_conntrack_count" {
			continue // not a setting
		}
		value, _ := os.ReadFile("/proc/sys/" + name) // a missing file, or a directory, counts as empty
		m.settings += fmt.Sprintf("%s=%s\n", name, value)
	}
	buckets, _ := os.ReadFile("/sys/module/nf_conntrack/parameters/hashsize")
	m.settings += fmt.Sprintf("buckets of the connection table: %s", buckets)
	if bin, err := build.DefaultDir(); err == nil {
		rules, err := exec.Command(filepath.Join(bin, "nft"), "--stateless", "list", "ruleset").CombinedOutput()
		m.rules = fmt.Sprintf("%s%v", rules, err) // an error is the same before and after
	}
	return m
}

// assertSame fails the test if the state has changed.
func (before machine) assertSame(t *testing.T) {
	t.Helper()
	after := snapshotMachine(t)
	if after.mounts != before.mounts {
		t.Errorf("the machine's mounts changed:\nbefore:\n%s\nafter:\n%s", before.mounts, after.mounts)
	}
	if !slices.Equal(after.interfaces, before.interfaces) {
		t.Errorf("the machine's interfaces changed from %v to %v", before.interfaces, after.interfaces)
	}
	if after.settings != before.settings {
		t.Errorf("the machine's settings changed: %s", changed(before.settings, after.settings))
	}
	if after.rules != before.rules {
		t.Errorf("the machine's firewall changed from\n%s to\n%s", before.rules, after.rules)
	}
}

// changed returns the lines of after that before lacks.
func changed(before, after string) []string {
	had := strings.Split(before, "\n")
	return slices.DeleteFunc(strings.Split(after, "\n"), func(line string) bool { return slices.Contains(had, line) })
}

// process is a process on this machine, with its namespaces.
type process struct {
	pid    int
	parent int
	state  string
	spaces []string
	text   string
}

// processes lists all processes.
func processes(t *testing.T) []process {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for _, stat := range stats {
		dir := filepath.Dir(stat)
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // it has exited
		}
		head, tail, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(tail)
		p := process{state: fields[0], text: head}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		p.parent, _ = strconv.Atoi(fields[1])
		for _, kind := range []string{"net", "mnt", "pid"} {
			if space, err := os.Readlink(filepath.Join(dir, "ns", kind)); err == nil {
				p.spaces = append(p.spaces, space)
			}
		}
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		p.text += " " + strings.ReplaceAll(string(arguments), "\x00", " ")
		all = append(all, p)
	}
	return all
}

// descendants returns the process pid and its descendants.
func descendants(t *testing.T, pid int) []process {
	t.Helper()
	all := processes(t)
	inside := map[int]bool{pid: true}
	for range all { // enough rounds for any order
		for _, p := range all {
			if inside[p.parent] {
				inside[p.pid] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(p process) bool { return !inside[p.pid] })
}

// assertGone fails the test if a process is left in the namespaces of the given
// processes, except the machine's own namespaces.
func assertGone(t *testing.T, old []process) {
	t.Helper()
	var own process
	for _, p := range processes(t) {
		if p.pid == os.Getpid() {
			own = p
		}
	}
	spaces := map[string]bool{}
	for _, p := range old {
		for _, s := range p.spaces {
			spaces[s] = !slices.Contains(own.spaces, s)
		}
	}
	// A killed process exits only after the kernel has freed its memory.
	var left []string
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left = nil
		for _, p := range processes(t) {
			if p.state == "Z" || p.state == "X" {
				continue // exited, but not reaped by the machine's init yet
			}
			if slices.ContainsFunc(p.spaces, func(s string) bool { return spaces[s] }) {
				left = append(left, fmt.Sprintf("process %d is still in the cluster's namespaces, in state %s: %s", p.pid, p.state, p.text))
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, line := range left {
		t.Error(line)
	}
}

// assertNothingLeft fails the test if a cluster's run directory or cgroup exists.
func assertNothingLeft(t *testing.T, dir, name string) {
	t.Helper()
	if _, err := os.Lstat(dir); err == nil {
		t.Errorf("%s still exists", dir)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("cgroups still exist: %v", left)
		}
	}
}

// eventually waits for a condition, and fails the test if that takes longer than timeout.
func eventually(t *testing.T, timeout time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %v: %s", timeout, what)
		}
	}
}
