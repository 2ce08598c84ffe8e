package hollow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is a process that runs Serve.
type Process struct {
	command  *exec.Cmd
	in       io.WriteCloser
	commands *json.Encoder
	reports  *json.Decoder
}

// Start starts a process whose command line, with the program's own executable, leads
// to a call of [Serve] with its standard input and output. Its standard error goes to
// log.
func Start(arguments []string, log *os.File) (*Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the hollow agents: %w", err)
	}
	command := exec.Command(executable, arguments...)
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program
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
	return &Process{command: command, in: in, commands: json.NewEncoder(in), reports: json.NewDecoder(out)}, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Do sends a command and returns the report.
func (p *Process) Do(command Command) (Report, error) {
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

// Stop stops all agents and waits until the process has exited.
func (p *Process) Stop() error {
	p.in.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("stop the hollow agents: %w", err)
	}
	return nil
}
