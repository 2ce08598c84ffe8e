package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// State is the state of a component.
type State string

// The states of a component. Stopped and Killed were requested; Failed was not.
const (
	Starting State = "starting" // not started yet
	Running  State = "running"
	Paused   State = "paused"
	Stopped  State = "stopped"
	Killed   State = "killed"
	Failed   State = "failed"
)

// Status is the reported status of a component.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Pid   int    `json:"pid,omitempty"`   // in the PID namespace of its supervisor
	Cause string `json:"cause,omitempty"` // why it failed, with the end of its log
}

// Component is a long-running program that is started, stopped and killed by
// name. Its output is appended to the file Log.
type Component struct {
	Name  string
	Log   string
	Table *Table
	Spec  func() Spec  // called before each start; the first three Files are ignored
	Died  func(Status) // called, without locks, after an exit that was not requested

	mu      sync.Mutex
	process *Process
	state   State
	cause   string
}

// stopGrace is how long a component may take to exit after SIGTERM.
const stopGrace = 10 * time.Second

// Actions lists the actions of [Component.Do].
const Actions = "start, stop, restart, kill, pause, resume"

// Do performs an action by name.
func (c *Component) Do(action string) error {
	switch action {
	case "start":
		return c.Start()
	case "stop":
		return c.Stop()
	case "kill":
		return c.Kill()
	case "pause":
		return c.freeze(syscall.SIGSTOP, Running, Paused)
	case "resume":
		return c.freeze(syscall.SIGCONT, Paused, Running)
	case "restart":
		if err := c.Stop(); err != nil {
			return err
		}
		return c.Start()
	}
	return fmt.Errorf("unknown action %q for %s: use one of %s", action, c.Name, Actions)
}

// Start starts the component. It returns an error if it is already running.
func (c *Component) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		return fmt.Errorf("%s is already %s", c.Name, c.state)
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	spec := c.Spec()
	spec.Files = append([]*os.File{nil, log, log}, spec.Files[min(3, len(spec.Files)):]...)
	p, err := c.Table.Start(spec)
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.Name, err)
	}
	c.process, c.state, c.cause = p, Running, ""
	go c.watch(p)
	return nil
}

// Stop sends SIGTERM, and SIGKILL after a grace period, and waits for the exit.
func (c *Component) Stop() error { return c.stop(stopGrace) }

// stop stops the component with a grace period.
func (c *Component) stop(grace time.Duration) error {
	return c.end(Stopped, func(p *Process) {
		p.Signal(syscall.SIGCONT, true) // a paused process would not handle SIGTERM
		p.Signal(syscall.SIGTERM, false)
		select {
		case <-p.Done():
		case <-time.After(grace):
			p.Signal(syscall.SIGKILL, true)
		}
	})
}

// Kill sends SIGKILL and waits for the exit.
func (c *Component) Kill() error {
	return c.end(Killed, func(p *Process) { p.Signal(syscall.SIGKILL, true) })
}

// end terminates the process with finish and waits for its exit.
func (c *Component) end(as State, finish func(*Process)) error {
	c.mu.Lock()
	p := c.process
	if p == nil {
		c.mu.Unlock()
		return fmt.Errorf("%s is not running", c.Name)
	}
	c.process, c.state = nil, as // from now on, its exit is expected
	c.mu.Unlock()
	finish(p)
	<-p.Done()
	return nil
}

// freeze sends SIGSTOP or SIGCONT.
func (c *Component) freeze(sig syscall.Signal, from, to State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || c.state != from {
		return fmt.Errorf("%s is not %s", c.Name, from)
	}
	c.process.Signal(sig, true)
	c.state = to
	return nil
}

// watch waits for the exit of p and reports it if it was not requested.
func (c *Component) watch(p *Process) {
	status := p.Status()
	c.mu.Lock()
	if c.process != p {
		c.mu.Unlock()
		return
	}
	c.process, c.state = nil, Failed
	c.cause = describe(status)
	if tail := Tail(c.Log, 15); tail != "" {
		c.cause += "; the end of " + c.Log + ":\n" + tail
	}
	c.mu.Unlock()
	if c.Died != nil {
		c.Died(c.Status())
	}
}

// Status returns the status of the component.
func (c *Component) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Name: c.Name, State: c.state, Cause: c.cause}
	if s.State == "" {
		s.State = Starting
	}
	if c.process != nil {
		s.Pid = c.process.Pid
	}
	return s
}

// describe formats a wait status.
func describe(s syscall.WaitStatus) string {
	if s.Signaled() {
		return fmt.Sprintf("terminated by signal %d (%s)", s.Signal(), s.Signal())
	}
	return fmt.Sprintf("exited with status %d", s.ExitStatus())
}

// Tail returns the last lines of a file, or "" if it cannot be read.
func Tail(path string, lines int) string {
	const window = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-window)
	b := make([]byte, info.Size()-from)
	n, _ := f.ReadAt(b, from)
	all := strings.Split(strings.TrimRight(string(b[:n]), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
