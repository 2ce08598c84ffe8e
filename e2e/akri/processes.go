package akri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"akri.sh/akri/kubebox/cluster"
)

// processNode is the node name of an agent that runs as a process. The cluster has no
// such node, so no Pod runs on it, and the controller must tolerate that.
const processNode = "this-machine"

// processes maps Akri's programs to their arguments, in which %s stands for their
// shared directory.
var processes = map[string][]string{
	"akri-controller": {"--node-grace=0", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"},
	"akri-agent": {
		"--node-name=" + processNode, "--discovery-handlers-dir=%s", "--kubelet-dir=%s/kubelet",
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
	},
	"akri-discovery": {
		"debug-echo", "--shared=true", "--discovery-handlers-dir=%s", "--availability-file=%s/debug-echo/debug-echo-availability.txt",
	},
}

// processesMark is the name of a file in the directory of [StartProcesses]: a directory without it is another program's.
const processesMark = "akri-processes"

// HasProcesses reports whether dir is the directory of processes that [StartProcesses] has started, or was about to start.
func HasProcesses(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, processesMark))
	return err == nil
}

// CheckProcessesDir returns an error unless dir does not exist, or is empty, or that of [StartProcesses].
func CheckProcessesDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || HasProcesses(dir) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s, for Akri's processes, is not empty: remove it, or choose another directory", dir)
	}
	return nil
}

// StartProcesses runs Akri as processes against a cluster without nodes. The processes
// outlive the caller; [StopProcesses] stops them. It creates dir for their process IDs
// and logs.
func StartProcesses(ctx context.Context, c *cluster.Cluster, programs Programs, dir string) error {
	if err := CheckProcessesDir(dir); err != nil {
		return err
	}
	if err := InstallCRDs(ctx, c, programs); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create a directory for Akri: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, processesMark), nil, 0o600); err != nil {
		return fmt.Errorf("mark the directory for Akri: %w", err)
	}
	for _, name := range []string{"debug-echo", "kubelet/plugins_registry", "kubelet/device-plugins"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("create a directory for Akri: %w", err)
		}
	}
	for program, template := range processes {
		var arguments []string
		for _, argument := range template {
			arguments = append(arguments, strings.ReplaceAll(argument, "%s", dir))
		}
		if err := startProcess(filepath.Join(programs.Dir, program), arguments, c.Kubeconfig(), dir); err != nil {
			return errors.Join(err, StopProcesses(dir))
		}
	}
	return nil
}

// startProcess starts a program and records its process ID in dir.
func startProcess(executable string, arguments []string, kubeconfig, dir string) error {
	name := filepath.Base(executable)
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer log.Close() // the process has its own descriptor
	command := exec.Command(executable, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	pid := strconv.Itoa(command.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte(pid), 0o600); err != nil {
		return errors.Join(fmt.Errorf("record the process ID of %s: %w", name, err), command.Process.Kill())
	}
	return nil
}

// StopProcesses stops the processes that [StartProcesses] started, and removes dir. A directory that is not that of
// StartProcesses stays.
func StopProcesses(dir string) error {
	const grace = 15 * time.Second
	if !HasProcesses(dir) {
		return nil
	}
	for program := range processes {
		text, err := os.ReadFile(filepath.Join(dir, program+".pid"))
		if err != nil {
			continue // it was not started
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil || !isRunning(pid, program) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop %s: %w", program, err)
		}
		for began := time.Now(); isRunning(pid, program); time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > grace {
				return fmt.Errorf("%s (process %d) does not exit", program, pid)
			}
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove Akri's directory: %w", err)
	}
	return nil
}

// isRunning reports whether a process exists and runs the program: process IDs are reused.
func isRunning(pid int, program string) bool {
	executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.HasPrefix(filepath.Base(executable), program)
}
