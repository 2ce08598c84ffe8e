package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// starterVariable makes the test's executable a program that starts a cluster in the
// directory it names, and then waits. The other variables are its settings.
const (
	starterVariable = "AKRI_TEST_STARTER"
	starterNodes    = "AKRI_TEST_NODES"    // default 1
	starterDetached = "AKRI_TEST_DETACHED" // not empty: the cluster outlives its starter
)

// startAndWait is the starter's main function.
func startAndWait(dir string) {
	config := cluster.Config{Dir: dir, Nodes: 1, Detached: os.Getenv(starterDetached) != ""}
	if n, err := strconv.Atoi(os.Getenv(starterNodes)); err == nil {
		config.Nodes = n
	}
	if _, err := cluster.Start(context.Background(), config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.WriteFile(dir+".up", nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	select {}
}

// requireNodes skips or fails the test where no cluster with nodes can run.
func requireNodes(t *testing.T) {
	t.Helper()
	err := cluster.Probe()
	if err == nil {
		var bin string
		if bin, err = build.DefaultDir(); err == nil {
			err = build.Check(bin, true)
		}
	}
	if err == nil {
		return
	}
	clustertest.Skip(t, err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// starter runs a starter for a cluster in dir.
func starter(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), append(env, starterVariable+"="+dir)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.Remove(dir + ".up")
		if err := cluster.Down(dir); err != nil && !errors.As(err, new(*cluster.NoClusterError)) {
			t.Error(err)
		}
	})
	return cmd
}

// runDir returns a run directory that does not exist yet.
func runDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("/tmp", "akri-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	return filepath.Join(parent, "run")
}

func TestClusterStopsWithItsStarter(t *testing.T) {
	requireNodes(t)
	for _, tc := range []struct {
		name    string
		reached func(dir string) bool
	}{
		{"killed while the node boots", func(dir string) bool { return exists(filepath.Join(dir, "node1", "control.sock")) }},
		{"killed while the control plane starts", func(dir string) bool { return exists(filepath.Join(dir, "pki", "sa.pub")) }},
		{"killed when the cluster is ready", func(dir string) bool { return exists(dir + ".up") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := snapshotMachine(t)
			dir := runDir(t)
			cmd := starter(t, dir)
			eventually(t, time.Minute, "the starter reaches the point where it is killed", func() bool { return tc.reached(dir) })
			c, err := cluster.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			pid := supervisorOf(t, dir)
			procs := descendants(t, pid)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, 15*time.Second, "the run directory is gone", func() bool { return !exists(dir) })
			eventually(t, 5*time.Second, "the supervisor is gone", func() bool {
				return !slices.ContainsFunc(processes(t), func(p process) bool { return p.pid == pid && p.state != "Z" })
			})
			assertGone(t, procs)
			assertNothingLeft(t, dir, c.Name())
			before.assertSame(t)
		})
	}
}

func TestDetachedClusterOutlivesItsStarterAndDownCleansUp(t *testing.T) {
	requireNodes(t)
	before := snapshotMachine(t)
	dir := runDir(t)
	cmd := starter(t, dir, starterDetached+"=1")
	eventually(t, time.Minute, "the cluster is up", func() bool { return exists(dir + ".up") })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	c, err := cluster.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "get", "nodes"); err != nil {
		t.Fatalf("after the starter was killed: %v: %s", err, out)
	}
	if _, err := cluster.Start(t.Context(), cluster.Config{Dir: dir}); err == nil {
		t.Error("a second cluster was started in the same directory")
	}

	pid := supervisorOf(t, dir)
	procs := descendants(t, pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // the supervisor cannot clean up
		t.Fatal(err)
	}
	if err := cluster.Down(dir); err != nil {
		t.Fatal(err)
	}
	assertGone(t, procs)
	assertNothingLeft(t, dir, c.Name())
	before.assertSame(t)
}
