package hollow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a process that runs Serve.
type process struct {
	command  *exec.Cmd
	in       io.WriteCloser
	commands *json.Encoder
	reports  *json.Decoder
	agents   int // that were started
}

// startProcess starts a process with a command line of the program's own executable. Its
// standard error goes to log. A user other than 0 is the user that it runs as, which
// takes root.
func startProcess(arguments []string, log *os.File, user uint32) (*process, error) {
	// Another user may not be allowed to look into the executable's directory.
	command := exec.Command("/proc/self/exe", arguments...)
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program
	if user != 0 {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: user}
		command.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_DAC_OVERRIDE} // the files are root's
	}
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the hollow agents: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the hollow agents: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the hollow agents: %w", err)
	}
	return &process{command: command, in: in, commands: json.NewEncoder(in), reports: json.NewDecoder(out)}, nil
}

// do sends a command and returns the report.
func (p *process) do(command Command) (Report, error) {
	var report Report
	err := p.commands.Encode(command)
	if err == nil {
		err = p.reports.Decode(&report)
	}
	if err == nil && report.Error != "" {
		err = errors.New(report.Error)
	}
	if err != nil {
		return report, fmt.Errorf("hollow agents: %w", err)
	}
	return report, nil
}

// stop stops all agents and waits until the process has exited.
func (p *process) stop() error {
	p.in.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("stop the hollow agents: %w", err)
	}
	return nil
}
