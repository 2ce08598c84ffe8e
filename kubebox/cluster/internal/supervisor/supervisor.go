package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"akri.sh/akri/kubebox/cluster/internal/control"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/readiness"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// etcdDir is the subdirectory of etcd's data in the run directory.
const etcdDir = "etcd"

// Supervisor runs the cluster that its Config describes.
type Supervisor struct {
	config   Config
	table    *process.Table
	env      []string
	operator *control.Operator
	machines []*machine
	dns      *process.Component // nil without nodes
	routed   bool               // every node has a kube-proxy
	reports  *json.Encoder
	forwards forwards

	end    context.CancelCauseFunc
	up     atomic.Bool // ready; from now on, a component that exits does not stop the cluster
	ending atomic.Bool // components that exit are not reported
}

// The causes of an orderly stop.
var (
	errStopRequested = errors.New("stop requested")
	errStarterExited = errors.New("the program that started the cluster has exited")
)

// Run runs a cluster. It returns when nothing is left of it.
func Run(input, lifeline, reports, listener *os.File) error {
	s := &Supervisor{reports: json.NewEncoder(reports)}
	if err := json.NewDecoder(input).Decode(&s.config); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	ctx, s.end = context.WithCancelCause(ctx)
	go s.watchLifeline(lifeline)

	s.table = process.NewTable()
	s.env = s.config.environment()
	os.Setenv("PATH", strings.TrimPrefix(s.env[0], "PATH=")) // for looking up commands
	err := s.start(ctx, listener)
	if err == nil {
		_ = s.reports.Encode(Report{Ready: true, RoutesServices: s.routed})
		reports.Close()
		<-ctx.Done()
		log.Printf("Stopping: %v", context.Cause(ctx))
		return s.tearDown()
	}
	_ = s.reports.Encode(Report{Error: err.Error(), Logs: s.config.logs(err.Error())})
	return errors.Join(err, s.tearDown())
}

// logs returns the ends of the logs that a text does not quote.
func (c Config) logs(text string) string {
	const lines = 8
	var b strings.Builder
	for _, file := range LogFiles(c.Dir) {
		if tail := process.Tail(file, lines); tail != "" && !strings.Contains(text, file) {
			fmt.Fprintf(&b, "\nthe end of %s:\n%s", file, tail)
		}
	}
	return b.String()
}

// watchLifeline stops the cluster when the lifeline breaks.
func (s *Supervisor) watchLifeline(lifeline *os.File) {
	message := make([]byte, 1)
	if n, _ := lifeline.Read(message); n == 1 && message[0] == Release {
		return
	}
	s.end(errStarterExited)
}

// start creates everything and waits until the cluster is ready.
func (s *Supervisor) start(ctx context.Context, listener *os.File) error {
	if s.config.Isolated {
		if err := s.isolate(listener); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(LogDir(s.config.Dir), 0o755); err != nil {
		return err
	}
	if err := s.config.writeCertificates(); err != nil {
		return err
	}
	if err := os.WriteFile(s.config.auditPolicyFile(), []byte(auditPolicy), 0o644); err != nil {
		return err
	}
	programs, err := s.controlPlane()
	if err != nil {
		return err
	}
	s.operator = &control.Operator{Table: s.table, Env: s.env}
	for _, p := range programs {
		s.operator.Components = append(s.operator.Components, p)
	}
	if s.config.Nodes > 0 {
		if err := s.prepareServices(); err != nil {
			return err
		}
	}
	for i := range s.config.Nodes {
		m := s.newMachine(i)
		s.machines = append(s.machines, m)
		s.operator.Components = append(s.operator.Components, m)
	}
	if err := wire.Serve(ctx, ControlSocket(s.config.Dir), s.handle); err != nil {
		return err
	}
	if err := s.bringUp(ctx, programs); err != nil {
		return err
	}
	s.up.Store(true)
	return nil
}

// isolate sets up the new namespaces.
func (s *Supervisor) isolate(listener *os.File) error {
	if err := sandbox.Detach(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(s.config.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := sandbox.Bridge(bridgePrefix, serviceAddress+"/32"); err != nil {
		return err
	}
	outside, err := net.FileListener(listener)
	if err != nil {
		return fmt.Errorf("taking over the listener: %w", err)
	}
	go forwardTo(outside, func() (string, error) { return bridgeAddress + ":443", nil })
	return nil
}

// bringUp starts everything in dependency order, and concurrently where possible: nodes
// boot while the API server starts.
func (s *Supervisor) bringUp(ctx context.Context, programs []*process.Component) error {
	began := time.Now()
	progress := func(format string, args ...any) {
		text := fmt.Sprintf("%4.1fs  ", time.Since(began).Seconds()) + fmt.Sprintf(format, args...)
		_ = s.reports.Encode(Report{Progress: text})
	}
	client, err := readiness.NewClient(s.config.server(), s.config.pki("ca.crt"), s.config.pki("admin.crt"), s.config.pki("admin.key"))
	if err != nil {
		return err
	}
	for _, p := range programs[:2] { // etcd, kube-apiserver
		if err := p.Start(); err != nil {
			return err
		}
	}
	for _, m := range s.machines {
		if err := m.boot(); err != nil {
			return fmt.Errorf("booting %s: %w", m.Name, err)
		}
	}
	if err := client.APIServer(ctx); err != nil {
		return err
	}
	progress("the API server is ready")
	for _, p := range programs[2:] {
		if err := p.Start(); err != nil {
			return err
		}
	}
	if s.dns != nil {
		if err := s.startServices(ctx, client); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failures := make([]error, len(s.machines))
	for i, m := range s.machines {
		all.Go(func() {
			if failures[i] = client.Node(ctx, m.Name); failures[i] == nil {
				progress("%s is Ready", m.Name)
			}
		})
	}
	accountFailure := client.ServiceAccount(ctx)
	if accountFailure == nil {
		progress("the controllers are running")
	}
	all.Wait()
	if err := errors.Join(append(failures, accountFailure)...); err != nil || s.dns == nil {
		return err
	}
	if err := s.awaitServices(ctx); err != nil {
		return err
	}
	if s.routed {
		progress("Services are routed and have names")
	} else {
		progress("Services have names") // a warning said that they are not routed
	}
	return nil
}

// died handles a component that exited by itself.
func (s *Supervisor) died(status process.Status) {
	if s.ending.Load() {
		return
	}
	log.Printf("%s %s", status.Name, status.Cause)
	if !s.up.Load() {
		s.end(fmt.Errorf("%s %s", status.Name, status.Cause))
	}
}

// handle is a [wire.Handler].
func (s *Supervisor) handle(ctx context.Context, r wire.Request, files []*os.File) (wire.Response, []*os.File) {
	if r.Op == wire.End {
		s.end(errStopRequested)
		select {} // the response is the end of the connection, when this process exits
	}
	if r.Op == wire.Forward {
		response, err := s.forward(r, files)
		if err != nil {
			response.Error = err.Error()
		}
		return response, nil
	}
	return s.operator.Handle(ctx, r, files)
}

// tearDown kills all processes and then removes the cgroups and the run directory.
func (s *Supervisor) tearDown() error {
	s.ending.Store(true)
	s.table.KillAll()
	return Remove(s.config.Dir, s.config.Name)
}

// Remove removes the cgroups and the run directory of a cluster whose processes have
// exited.
func Remove(dir, name string) error {
	const timeout = 10 * time.Second
	var err error
	if groups, _ := sandbox.Cgroups(name); len(groups) > 0 {
		err = sandbox.RemoveCgroup(name, timeout)
	}
	_ = unix.Unmount(filepath.Join(dir, etcdDir), unix.MNT_DETACH) // fails if nothing is mounted
	return errors.Join(err, os.RemoveAll(dir))
}

// environment returns the environment of all programs of the cluster.
func (c Config) environment() []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return slices.Clip([]string{
		"PATH=" + c.Bin + ":" + path,
		"HOME=/root",
		"KUBECONFIG=" + InsideKubeconfig(c.Dir),
	})
}
