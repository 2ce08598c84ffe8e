package process

import (
	"errors"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Table owns all children of this process. Create only one per process.
type Table struct {
	mu       sync.Mutex // held from fork to registration, so that no exit is missed
	children map[int]*Process
	closed   bool // by KillAll
	starts   chan func()
}

// NewTable returns a table that reaps children for the lifetime of this process.
func NewTable() *Table {
	t := &Table{children: map[int]*Process{}, starts: make(chan func())}
	exits := make(chan os.Signal, 1)
	signal.Notify(exits, unix.SIGCHLD)
	go t.reap(exits)
	go t.fork()
	return t
}

// Spec describes a process to start. Files are the child's descriptors 0, 1, 2, 3, ...;
// a nil file among the first three is /dev/null.
type Spec struct {
	Path  string
	Args  []string // without the program's name
	Env   []string // nil: that of this process
	Dir   string   // empty: /
	Files []*os.File
	Flags uintptr // namespaces to create, syscall.CLONE_NEW...
}

// Process is a started child.
type Process struct {
	Pid    int
	table  *Table
	done   chan struct{}
	status syscall.WaitStatus // valid once done is closed
}

// Start forks and executes s.
func (t *Table) Start(s Spec) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := make([]*os.File, max(3, len(s.Files)))
	copy(files, s.Files)
	for i := range 3 {
		if files[i] == nil {
			files[i] = null
		}
	}
	if s.Dir == "" {
		s.Dir = "/"
	}
	attr := &os.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files, Sys: &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: s.Flags,
	}}
	p := &Process{table: t, done: make(chan struct{})}
	result := make(chan error, 1) // sent while the lock is held
	t.starts <- func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.closed {
			result <- errors.New("all processes are being terminated")
			return
		}
		child, err := os.StartProcess(s.Path, append([]string{s.Path}, s.Args...), attr)
		if err == nil {
			p.Pid = child.Pid
			t.children[p.Pid] = p
			_ = child.Release()
		}
		result <- err
	}
	if err := <-result; err != nil {
		return nil, err
	}
	return p, nil
}

// KillAll kills all children with their process groups, waits for them, and prevents
// further starts.
func (t *Table) KillAll() {
	t.mu.Lock()
	t.closed = true
	all := slices.Collect(maps.Values(t.children))
	t.mu.Unlock()
	for _, p := range all {
		p.Signal(syscall.SIGKILL, true)
	}
	for _, p := range all {
		<-p.done
	}
}

// fork runs all starts on one thread that never exits, because the kernel sends the
// parent-death signal when the forking thread exits, not when the process does.
func (t *Table) fork() {
	runtime.LockOSThread()
	for start := range t.starts {
		start()
	}
}

// reap reaps children until none is left, after each SIGCHLD.
func (t *Table) reap(exits <-chan os.Signal) {
	for range exits {
		for t.reapOne() {
		}
	}
}

// reapOne reaps one child and reports whether there may be more.
func (t *Table) reapOne() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if p := t.children[pid]; p != nil { // otherwise it was an orphan
		delete(t.children, pid)
		p.status = status
		close(p.done)
	}
	return true
}

// Done returns a channel that is closed when the process has been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status waits for the exit and returns its wait status.
func (p *Process) Status() syscall.WaitStatus {
	<-p.done
	return p.status
}

// Signal sends sig to the process, or to its process group if group is set. It does
// nothing if the process has been reaped.
func (p *Process) Signal(sig syscall.Signal, group bool) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	if p.table.children[p.Pid] != p {
		return
	}
	pid := p.Pid
	if group {
		pid = -pid
	}
	_ = syscall.Kill(pid, sig) // fails only if it has just exited
}
