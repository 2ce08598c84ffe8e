package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"akri.sh/akri/kubebox/cluster/internal/sandbox"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

// NoNodesError reports why this machine cannot run nodes.
type NoNodesError struct{ Reason error }

func (e *NoNodesError) Error() string {
	return fmt.Sprintf("this machine cannot run nodes, only a control plane: %v", e.Reason)
}

func (e *NoNodesError) Unwrap() error { return e.Reason }

// Probe checks whether nodes can run here by creating namespaces, mounts and a
// cgroup, and removing them again. It returns nil or a *NoNodesError.
func Probe() error {
	if err := checkReexec(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return &NoNodesError{errors.New("nodes need root")}
	}
	var output bytes.Buffer
	c := exec.Command("/proc/self/exe")
	c.Env = supervisor.ProbeEnvironment()
	c.Stderr = &output
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: sandbox.Namespaces, Pdeathsig: syscall.SIGKILL}
	switch err := c.Run(); {
	case errors.As(err, new(*exec.ExitError)):
		return &NoNodesError{errors.New(strings.TrimSpace(output.String()))}
	case err != nil:
		return &NoNodesError{fmt.Errorf("creating namespaces: %w", err)}
	}
	return nil
}
