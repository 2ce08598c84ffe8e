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

// Stop ends the cluster and returns when nothing of it is left: no process, and
// with the processes no namespace, mount or interface; no control group; no run
// directory. What resists is named in the error. To stop a cluster that is gone
// is no error.
func (c *Cluster) Stop() error {
	if c.state.alive() {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		go wire.Call(ctx, supervisor.ControlSocket(c.dir), wire.Request{Op: wire.End}) // its answer is the end
	}
	return c.remove()
}

// Down stops the cluster in dir, or removes what one that died has left there.
func Down(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s, err := readState(dir)
	if err != nil {
		return err
	}
	return (&Cluster{dir: dir, state: s}).Stop()
}

// remove waits for the end of the supervisor, which was asked for in one way or
// another, forces it if need be, and removes what is left.
func (c *Cluster) remove() error {
	if c.lifeline != nil {
		c.lifeline.Close()
	}
	if !c.awaitEnd(endLimit) {
		syscall.Kill(c.state.Pid, syscall.SIGKILL)
		if !c.awaitEnd(endLimit) {
			return fmt.Errorf("process %d, the supervisor of the cluster in %s, does not end", c.state.Pid, c.dir)
		}
	}
	if err := supervisor.Remove(c.dir, c.state.Name); err != nil {
		return err
	}
	return c.leftovers()
}

func (c *Cluster) awaitEnd(within time.Duration) bool {
	for deadline := time.Now().Add(within); c.state.alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// leftovers names what a cluster that ended should not have left.
func (c *Cluster) leftovers() error {
	var all []error
	if _, err := os.Lstat(c.dir); !errors.Is(err, fs.ErrNotExist) {
		all = append(all, fmt.Errorf("%s is still there", c.dir))
	}
	groups, _ := sandbox.Cgroups(c.state.Name)
	for _, g := range groups {
		all = append(all, fmt.Errorf("the control group %s is still there", g))
	}
	return errors.Join(all...)
}

func tailOfSupervisor(dir string) string { return process.Tail(supervisorLog(dir), 15) }
