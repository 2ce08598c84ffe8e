package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// Command is a program to run inside the cluster. It sees the machine's files, but the
// node's own network, processes, /var, /etc, /opt and /run.
type Command struct {
	Node           string   // empty: in the control plane's namespaces
	Args           []string // the program, looked up in the cluster's executables and then in $PATH, and its arguments
	Env            []string // in addition to PATH, HOME and KUBECONFIG
	Dir            string   // empty: /
	Stdin          io.Reader
	Stdout, Stderr io.Writer // an *os.File is passed to the program directly; the same writer is not written to concurrently
}

// ExitError reports that a command ran and failed.
type ExitError struct {
	Args   []string
	Status int    // exit status, or 128 plus the number of the signal that terminated it
	Output string // the end of standard error, unless Command.Stderr was set
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%q exited with status %d", e.Args, e.Status)
	if e.Output != "" {
		text += ": " + e.Output
	}
	return text
}

// drainTimeout bounds the wait for output of the command's own children, which may
// outlive it.
const drainTimeout = 2 * time.Second

// Exec runs a command and waits for it. When ctx is done, the command is killed. If the
// command fails, the error is an *ExitError.
func (c *Cluster) Exec(ctx context.Context, command Command) error {
	socket, err := c.socket(command.Node)
	if err != nil {
		return err
	}
	var stderrTail bytes.Buffer
	if command.Stderr == nil {
		command.Stderr = &stderrTail
	}
	var p pipes
	defer p.close()
	stdin, err := p.source(command.Stdin)
	if err != nil {
		return err
	}
	stdout, err := p.sink(command.Stdout)
	if err != nil {
		return err
	}
	stderr := stdout
	if !sameWriter(command.Stdout, command.Stderr) {
		if stderr, err = p.sink(command.Stderr); err != nil {
			return err
		}
	}
	request := wire.Request{Op: wire.Exec, Args: command.Args, Env: command.Env, Dir: command.Dir}
	response, _, err := wire.Call(ctx, socket, request, stdin, stdout, stderr)
	p.drain()
	if err != nil {
		return err
	}
	if response.Exit != 0 {
		text := bytes.TrimSpace(stderrTail.Bytes())
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

// sameWriter reports whether a and b are the same writer. Writers whose type cannot be
// compared are not.
func sameWriter(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && a == b
}

// pipes connects a command's readers and writers to pipes, whose far ends are passed
// into the cluster.
type pipes struct {
	far, near []*os.File
	copies    sync.WaitGroup
}

// source returns the file that the command reads r from.
func (p *pipes) source(r io.Reader) (*os.File, error) {
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
	go func() { // ends at the end of r, or when close closes the pipe
		_, _ = io.Copy(near, r)
		near.Close()
	}()
	return far, nil
}

// sink returns the file through which the command writes to w.
func (p *pipes) sink(w io.Writer) (*os.File, error) {
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
	p.copies.Go(func() { _, _ = io.Copy(w, near) })
	return far, nil
}

func (p *pipes) null(flag int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		p.far = append(p.far, f)
	}
	return f, err
}

// drain waits for the output of a command that has exited.
func (p *pipes) drain() {
	for _, f := range p.far {
		f.Close()
	}
	for _, f := range p.near {
		_ = f.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	p.copies.Wait()
}

func (p *pipes) close() {
	for _, f := range append(p.far, p.near...) {
		f.Close() // drain may have closed it already
	}
}
