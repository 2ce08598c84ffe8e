// Package control handles the requests that the control plane and nodes have in common:
// run a command, create a socket, start and stop a component. An [Operator] handles
// them in the namespaces of its process.
package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// Controlled is a component that can be started and stopped.
type Controlled interface {
	Do(action string) error
	Status() process.Status
}

// Operator answers control requests for the namespaces it runs in.
type Operator struct {
	Table      *process.Table
	Components []Controlled
	Env        []string // of every command
}

// Handle is a [wire.Handler].
func (o *Operator) Handle(ctx context.Context, r wire.Request, files []*os.File) (wire.Response, []*os.File) {
	var (
		response wire.Response
		socket   *os.File
		err      error
	)
	switch r.Op {
	case wire.Exec:
		response.Exit, err = o.exec(ctx, r, files)
	case wire.Control:
		err = o.control(r.Name, r.Action)
	case wire.Report:
		response.Components = o.Report()
	case wire.Dial:
		socket, err = dial(ctx, r.Network, r.Address)
	case wire.Listen:
		socket, err = listen(ctx, r.Network, r.Address)
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	if err != nil {
		return wire.Response{Error: err.Error()}, nil
	}
	if socket != nil {
		return response, []*os.File{socket}
	}
	return response, nil
}

// Report returns the status of all components.
func (o *Operator) Report() []process.Status {
	var all []process.Status
	for _, c := range o.Components {
		all = append(all, c.Status())
	}
	return all
}

// control performs an action on a component.
func (o *Operator) control(name, action string) error {
	var names []string
	for _, c := range o.Components {
		if names = append(names, c.Status().Name); names[len(names)-1] == name {
			return c.Do(action)
		}
	}
	return fmt.Errorf("unknown component %q: choose from %q", name, names)
}

// exec runs a command with the caller's files. If the caller disconnects, the command is
// killed.
func (o *Operator) exec(ctx context.Context, r wire.Request, files []*os.File) (int, error) {
	if len(r.Args) == 0 || len(files) != 3 {
		return 0, errors.New("the request must have a command and three standard files")
	}
	path, err := exec.LookPath(r.Args[0])
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		_ = syscall.SetNonblock(int(f.Fd()), false) // Go's pipes are non-blocking; most programs expect blocking ones
	}
	p, err := o.Table.Start(process.Spec{
		Path:  path,
		Args:  r.Args[1:],
		Env:   slices.Concat(o.Env, r.Env),
		Dir:   r.Dir,
		Files: files,
	})
	if err != nil {
		return 0, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Signal(syscall.SIGKILL, true)
	}
	status := p.Status()
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// filer is implemented by all Go sockets; it returns a duplicate descriptor.
type filer interface{ File() (*os.File, error) }

// dial returns a connected socket.
func dial(ctx context.Context, network, address string) (*os.File, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // the file is a duplicate
	return conn.(filer).File()
}

// listen returns a listening socket.
func listen(ctx context.Context, network, address string) (*os.File, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if l, ok := listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
	defer listener.Close()
	return listener.(filer).File()
}
