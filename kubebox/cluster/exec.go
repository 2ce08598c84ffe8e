package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// Command is a program to run inside the cluster. It sees the machine's files,
// but the node's network, processes, /var, /etc and /run.
type Command struct {
	Node           string   // empty: in the control plane's namespaces
	Args           []string // program, found by $PATH with the cluster's executables first, and arguments
	Env            []string // beside PATH, HOME and KUBECONFIG
	Dir            string   // empty: /
	Stdin          io.Reader
	Stdout, Stderr io.Writer // an *os.File is handed over as it is
}

// ExitError says that a command ran and failed.
type ExitError struct {
	Args   []string
	Status int    // 128 and the number of the signal that ended it, if one did
	Output string // the end of standard error, unless the caller took that
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%q ended with exit status %d", e.Args, e.Status)
	if e.Output != "" {
		text += ": " + e.Output
	}
	return text
}

// drainLimit bounds the wait for output that a command's own children, still
// alive after it, could go on writing.
const drainLimit = 2 * time.Second

// Exec runs a command and waits for it. When ctx ends, the command is killed.
// A command that fails gives an *ExitError.
func (c *Cluster) Exec(ctx context.Context, command Command) error {
	socket, err := c.socket(command.Node)
	if err != nil {
		return err
	}
	var complaint bytes.Buffer
	if command.Stderr == nil {
		command.Stderr = &complaint
	}
	var p plumbing
	defer p.close()
	stdin, err := p.source(command.Stdin)
	if err != nil {
		return err
	}
	stdout, err := p.sink(command.Stdout)
	if err != nil {
		return err
	}
	stderr, err := p.sink(command.Stderr)
	if err != nil {
		return err
	}
	request := wire.Request{Op: wire.Exec, Args: command.Args, Env: command.Env, Dir: command.Dir}
	response, _, err := wire.Call(ctx, socket, request, stdin, stdout, stderr)
	p.drain()
	if err != nil {
		return err
	}
	if response.Exit != 0 {
		text := bytes.TrimSpace(complaint.Bytes())
		return &ExitError{Args: command.Args, Status: response.Exit, Output: string(text[max(0, len(text)-2048):])}
	}
	return nil
}

// Output runs a command in a node and returns its standard output.
func (c *Cluster) Output(ctx context.Context, node string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := c.Exec(ctx, Command{Node: node, Args: args, Stdout: &out})
	return out.Bytes(), err
}

// plumbing joins the readers and writers of a command with pipes, the far ends
// of which go into the cluster.
type plumbing struct {
	far, near []*os.File
	copies    sync.WaitGroup
}

func (p *plumbing) source(r io.Reader) (*os.File, error) {
	switch r := r.(type) {
	case nil:
		return p.null(os.O_RDONLY)
	case *os.File:
		return r, nil
	}
	far, near, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.far, p.near = append(p.far, far), append(p.near, near)
	go func() { // ends with r, or when close takes the pipe away
		io.Copy(near, r)
		near.Close()
	}()
	return far, nil
}

func (p *plumbing) sink(w io.Writer) (*os.File, error) {
	switch w := w.(type) {
	case nil:
		return p.null(os.O_WRONLY)
	case *os.File:
		return w, nil
	}
	near, far, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.far, p.near = append(p.far, far), append(p.near, near)
	p.copies.Go(func() { io.Copy(w, near) })
	return far, nil
}

func (p *plumbing) null(flag int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		p.far = append(p.far, f)
	}
	return f, err
}

// drain waits for the output of a command that has ended.
func (p *plumbing) drain() {
	for _, f := range p.far {
		f.Close()
	}
	for _, f := range p.near {
		f.SetReadDeadline(time.Now().Add(drainLimit))
	}
	p.copies.Wait()
}

func (p *plumbing) close() {
	for _, f := range append(p.far, p.near...) {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			continue // nothing can be done about a pipe
		}
	}
}
