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

// Table owns all children of this process. Create one per process.
type Table struct {
	mu       sync.Mutex // held from fork to registration, so that no exit is missed
	children map[int]*Process
	closed   bool // by KillAll
	starts   chan func()
}

// NewTable begins to reap. It lasts as long as the process.
func NewTable() *Table {
	t := &Table{children: map[int]*Process{}, starts: make(chan func())}
	exits := make(chan os.Signal, 1)
	signal.Notify(exits, unix.SIGCHLD)
	go t.reap(exits)
	go t.fork()
	return t
}

// Spec says what to start. Files are the child's descriptors 0, 1, 2, 3, ...;
// a nil file is /dev/null when among the first three.
type Spec struct {
	Path  string
	Args  []string // without the program's name
	Env   []string // nil: this process's own
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
			result <- errors.New("everything is being ended")
			return
		}
		child, err := os.StartProcess(s.Path, append([]string{s.Path}, s.Args...), attr)
		if err == nil {
			p.Pid = child.Pid
			t.children[p.Pid] = p
			child.Release()
		}
		result <- err
	}
	if err := <-result; err != nil {
		return nil, err
	}
	return p, nil
}

// KillAll kills every child with its process group, waits for all of them, and
// refuses to start more.
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

// fork runs every start on one thread that never ends: the kernel sends the
// parent-death signal when the thread that forked is gone, not the process.
func (t *Table) fork() {
	runtime.LockOSThread()
	for start := range t.starts {
		start()
	}
}

func (t *Table) reap(exits <-chan os.Signal) {
	for range exits {
		for t.reapOne() {
		}
	}
}

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
	if p := t.children[pid]; p != nil { // else an orphan that nobody watches
		delete(t.children, pid)
		p.status = status
		close(p.done)
	}
	return true
}

// Done is closed when the process has ended and been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status waits for the end and tells how it came.
func (p *Process) Status() syscall.WaitStatus {
	<-p.done
	return p.status
}

// Signal sends sig to the process, or to its whole session's process group if
// group is set. A process that has ended is left alone.
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
	syscall.Kill(pid, sig) // fails only if it has just ended
}
