package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

// Start starts a cluster and returns when its nodes are Ready and Pods can be
// created. If that fails or ctx is done, nothing is left behind.
//
// The error is a *NoNodesError if the machine cannot run nodes, and a
// *build.MissingError if executables are missing.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	if err := checkReexec(); err != nil {
		return nil, err
	}
	impossible := Probe()
	if impossible != nil && config.Nodes > 0 {
		return nil, impossible
	}
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if err := claim(config.Dir); err != nil {
		return nil, err
	}
	c := &Cluster{dir: config.Dir}
	c.state = state{Name: nameOf(config.Dir), Bin: config.Bin, Isolated: impossible == nil, Purpose: config.Purpose}
	for i := range config.Nodes {
		c.state.Nodes = append(c.state.Nodes, supervisor.NodeName(i))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, config.Timeout, fmt.Errorf("not ready within %v", config.Timeout))
	defer cancel()
	err = c.state.writeStarting(c.dir)
	if err == nil {
		err = c.launch(ctx, config)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster in %s: %w", c.dir, err), c.remove())
	}
	return c, nil
}

// launch starts the supervisor and follows its reports until the cluster is ready.
func (c *Cluster) launch(ctx context.Context, config Config) error {
	var images []string
	if config.Nodes > 0 {
		var err error
		if images, err = copyImages(c.dir, config.Images); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	address := listener.Addr().String()
	c.state.Server = "https://" + address
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer socket.Close()
	if !c.state.Isolated {
		socket.Close() // the API server listens there itself
		listener.Close()
		if socket, err = os.Open(os.DevNull); err != nil {
			return err
		}
		defer socket.Close()
	}
	reports, err := c.fork(supervisor.Config{
		Name:        c.state.Name,
		Dir:         c.dir,
		Bin:         config.Bin,
		Nodes:       config.Nodes,
		Images:      images,
		AuditLog:    config.AuditLog,
		Controllers: config.Controllers,
		Flags:       config.Flags,
		Isolated:    c.state.Isolated,
		HostAddress: address,
	}, socket)
	if err != nil {
		return err
	}
	defer reports.Close()
	if err := c.state.write(c.dir); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.lifeline.Close() })
	defer stop()
	ready, err := follow(reports, config.Progress)
	if err != nil {
		return c.explain(ctx, err, ready.Logs)
	}
	c.state.RoutesServices = ready.RoutesServices
	if err := c.state.write(c.dir); err != nil {
		return err
	}
	if !stop() {
		return context.Cause(ctx)
	}
	if config.Detached {
		if _, err := c.lifeline.Write([]byte{supervisor.Release}); err != nil {
			return err
		}
		return c.lifeline.Close()
	}
	return nil
}

// fork starts the supervisor in its namespaces and returns its reports.
func (c *Cluster) fork(config supervisor.Config, listener *os.File) (reports *os.File, err error) {
	input, err := os.CreateTemp(c.dir, "config-")
	if err != nil {
		return nil, err
	}
	defer input.Close()
	if err := json.NewEncoder(input).Encode(config); err != nil {
		return nil, err
	}
	if _, err := input.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	os.Remove(input.Name())
	if err := os.MkdirAll(supervisor.LogDir(c.dir), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(supervisorLog(c.dir))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	lifelineRead, lifelineWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifelineRead.Close()
	reports, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reportWrite.Close()

	cmd := exec.Command("/proc/self/exe")
	cmd.Env = supervisor.Environment()
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, log, log
	cmd.ExtraFiles = []*os.File{lifelineRead, reportWrite, listener} // in the order of supervisor.LifelineFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if config.Isolated {
		cmd.SysProcAttr.Cloneflags = sandbox.Namespaces
	}
	if err := cmd.Start(); err != nil {
		lifelineWrite.Close()
		reports.Close()
		return nil, err
	}
	c.lifeline = lifelineWrite
	c.state.Pid = cmd.Process.Pid
	c.state.StartTime, _ = startTimeOf(c.state.Pid) // it is running or a zombie, because it has not been reaped
	go func() { _ = cmd.Wait() }()
	return reports, nil
}

// follow forwards progress until the cluster is ready, and returns the report that says
// so. It returns an error, and the report of that, if the cluster fails to start.
func follow(reports io.Reader, progress func(string)) (supervisor.Report, error) {
	for lines := json.NewDecoder(reports); ; { // a line with logs has any length
		var r supervisor.Report
		err := lines.Decode(&r)
		switch {
		case errors.Is(err, io.EOF):
			return r, errSilent
		case err != nil:
			return r, err
		case r.Ready:
			return r, nil
		case r.Error != "":
			return r, errors.New(r.Error)
		case r.Progress != "":
			progress(r.Progress)
		}
	}
}

// errSilent means that the supervisor exited without reporting a reason.
var errSilent = errors.New("the supervisor exited unexpectedly")

// explain adds the cause that the reports do not contain, and the ends of the logs, unless the caller has canceled the
// start.
func (c *Cluster) explain(ctx context.Context, err error, logs string) error {
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if tail := process.Tail(supervisorLog(c.dir), 15); errors.Is(err, errSilent) && tail != "" {
		return fmt.Errorf("%w; its log:\n%s", err, tail)
	}
	if logs != "" {
		return fmt.Errorf("%w%s", err, logs)
	}
	return err
}

// supervisorLog returns the path of the supervisor's log.
func supervisorLog(dir string) string {
	return filepath.Join(supervisor.LogDir(dir), "supervisor.log")
}
