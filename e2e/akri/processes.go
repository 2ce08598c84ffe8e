package akri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"akri.sh/akri/kubebox/cluster"
)

// processNode is the node whose agent runs as a process. The cluster knows no
// node of that name, so no pod runs on it, and the controller must not mind.
const processNode = "this-machine"

// processes are Akri's programs with their arguments, where %s stands for the
// folder in which they meet.
var processes = map[string][]string{
	"akri-controller": {"--node-grace=0", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"},
	"akri-agent":      {"--node-name=" + processNode, "--discovery-handlers-dir=%s", "--kubelet-dir=%s/kubelet", "--metrics-bind-address=0"},
	"akri-discovery":  {"debug-echo", "--shared=true", "--discovery-handlers-dir=%s", "--availability-file=%s/debug-echo/debug-echo-availability.txt"},
}

// StartProcesses runs Akri beside a cluster that has no nodes. The processes
// outlive the caller; [StopProcesses] ends them. dir is made; it keeps their
// process ids and logs.
func StartProcesses(ctx context.Context, c *cluster.Cluster, programs Programs, dir string) error {
	if err := InstallKinds(ctx, c, programs); err != nil {
		return err
	}
	for _, folder := range []string{"", "debug-echo", "kubelet/plugins_registry", "kubelet/device-plugins"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return fmt.Errorf("make a folder for Akri: %w", err)
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

func startProcess(executable string, arguments []string, kubeconfig, dir string) error {
	name := filepath.Base(executable)
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return fmt.Errorf("make the log of %s: %w", name, err)
	}
	defer log.Close() // the process has its own
	command := exec.Command(executable, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	pid := strconv.Itoa(command.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte(pid), 0o600); err != nil {
		return errors.Join(fmt.Errorf("note the process id of %s: %w", name, err), command.Process.Kill())
	}
	return nil
}

// StopProcesses ends what [StartProcesses] started, and removes dir.
func StopProcesses(dir string) error {
	const grace = 15 * time.Second
	for program := range processes {
		text, err := os.ReadFile(filepath.Join(dir, program+".pid"))
		if err != nil {
			continue // it was not started
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil || !runs(pid, program) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("end %s: %w", program, err)
		}
		for began := time.Now(); runs(pid, program); time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > grace {
				return fmt.Errorf("%s (process %d) does not end", program, pid)
			}
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove Akri's folder: %w", err)
	}
	return nil
}

// runs tells whether a process is alive and is that program: ids are used again.
func runs(pid int, program string) bool {
	executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.HasPrefix(filepath.Base(executable), program)
}
