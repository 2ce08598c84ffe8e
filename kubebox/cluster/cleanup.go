package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// stopTimeout bounds how long a supervisor may take to stop its cluster.
const stopTimeout = 20 * time.Second

// Stop stops the cluster and returns when nothing is left of it: no process, and
// thus no namespace, mount or interface; no cgroup; no run directory. The error
// names anything that could not be removed. Stopping a stopped cluster is not an error.
func (c *Cluster) Stop() error {
	if c.state.alive() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		go func() { // the supervisor answers by closing the connection
			_, _, _ = wire.Call(ctx, supervisor.ControlSocket(c.dir), wire.Request{Op: wire.End})
		}()
	}
	return c.remove()
}

// Down stops the cluster in dir, or cleans up after one that crashed.
func Down(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s, err := readState(dir)
	if err != nil {
		return err
	}
	if s.Starting && s.alive() {
		return s.startingError(dir)
	}
	return (&Cluster{dir: dir, state: s}).Stop()
}

// remove waits until the supervisor exits, kills it if that takes too long, and then
// removes everything that is left of the cluster.
func (c *Cluster) remove() error { return c.removeWithin(stopTimeout) }

// removeWithin is remove with a timeout for the supervisor.
func (c *Cluster) removeWithin(timeout time.Duration) error {
	if c.lifeline != nil {
		c.lifeline.Close()
	}
	if !c.awaitExit(timeout) {
		_ = syscall.Kill(c.state.Pid, syscall.SIGKILL)
		if !c.awaitExit(stopTimeout) {
			return fmt.Errorf("process %d, the supervisor of the cluster in %s, does not exit", c.state.Pid, c.dir)
		}
	}
	if err := supervisor.Remove(c.dir, c.state.Name); err != nil {
		return err
	}
	return c.leftovers()
}

// awaitExit reports whether the supervisor has exited in time.
func (c *Cluster) awaitExit(within time.Duration) bool {
	for deadline := time.Now().Add(within); c.state.alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// leftovers returns an error that names everything a stopped cluster left behind.
func (c *Cluster) leftovers() error {
	var all []error
	if _, err := os.Lstat(c.dir); !errors.Is(err, fs.ErrNotExist) {
		all = append(all, fmt.Errorf("%s still exists", c.dir))
	}
	groups, _ := sandbox.Cgroups(c.state.Name)
	for _, g := range groups {
		all = append(all, fmt.Errorf("the cgroup %s still exists", g))
	}
	return errors.Join(all...)
}

// tailOfSupervisor returns the end of the supervisor's log.
func tailOfSupervisor(dir string) string { return process.Tail(supervisorLog(dir), 15) }
