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

const etcdDir = "etcd"

// Supervisor runs the cluster that its Config describes.
type Supervisor struct {
	config   Config
	table    *process.Table
	env      []string
	operator *control.Operator
	machines []*machine
	reports  *json.Encoder

	end    context.CancelCauseFunc
	up     atomic.Bool // a component that ends now is no reason to give up
	ending atomic.Bool
}

// Why a cluster ends. The first is what happens to every good one.
var (
	errAsked    = errors.New("it was asked to end")
	errAbandons = errors.New("the program that started it has ended")
)

// Run is the life of a cluster. It returns when nothing is left of it.
func Run(input, lifeline, reports, listener *os.File) error {
	s := &Supervisor{reports: json.NewEncoder(reports)}
	if err := json.NewDecoder(input).Decode(&s.config); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	ctx, s.end = context.WithCancelCause(ctx)
	go s.hold(lifeline)

	s.table = process.NewTable()
	s.env = s.config.environment()
	os.Setenv("PATH", strings.TrimPrefix(s.env[0], "PATH=")) // where commands are looked up
	err := s.start(ctx, listener)
	if err == nil {
		s.reports.Encode(Report{Ready: true})
		reports.Close()
		<-ctx.Done()
		log.Printf("ending: %v", context.Cause(ctx))
		return s.tearDown()
	}
	s.reports.Encode(Report{Error: err.Error()})
	return errors.Join(err, s.tearDown())
}

// hold ends the cluster when the lifeline breaks.
func (s *Supervisor) hold(lifeline *os.File) {
	message := make([]byte, 1)
	if n, _ := lifeline.Read(message); n == 1 && message[0] == Release {
		return
	}
	s.end(errAbandons)
}

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

// isolate furnishes the new namespaces.
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
	go forward(outside, bridgeAddress+":443")
	return nil
}

// bringUp starts everything in the order of need, and side by side where there
// is none: nodes boot while the API server does.
func (s *Supervisor) bringUp(ctx context.Context, programs []*process.Component) error {
	began := time.Now()
	progress := func(format string, args ...any) {
		text := fmt.Sprintf("%4.1fs  ", time.Since(began).Seconds()) + fmt.Sprintf(format, args...)
		s.reports.Encode(Report{Progress: text})
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
		progress("the controllers are at work")
	}
	all.Wait()
	return errors.Join(append(failures, accountFailure)...)
}

// died hears of every component that ended unasked.
func (s *Supervisor) died(status process.Status) {
	if s.ending.Load() {
		return
	}
	log.Printf("%s %s", status.Name, status.Cause)
	if !s.up.Load() {
		s.end(fmt.Errorf("%s %s", status.Name, status.Cause))
	}
}

func (s *Supervisor) handle(ctx context.Context, r wire.Request, files []*os.File) (wire.Response, []*os.File) {
	if r.Op == wire.End {
		s.end(errAsked)
		select {} // the caller hears it from the connection, which ends with the process
	}
	return s.operator.Handle(ctx, r, files)
}

// tearDown leaves nothing: first the processes, then what outlives them.
func (s *Supervisor) tearDown() error {
	s.ending.Store(true)
	s.table.KillAll()
	return Remove(s.config.Dir, s.config.Name)
}

// Remove deletes what a cluster without processes leaves behind: its control
// groups and its run directory.
func Remove(dir, name string) error {
	const within = 10 * time.Second
	var err error
	if groups, _ := sandbox.Cgroups(name); len(groups) > 0 {
		err = sandbox.RemoveCgroup(name, within)
	}
	unix.Unmount(filepath.Join(dir, etcdDir), unix.MNT_DETACH) // fails where nothing is mounted
	return errors.Join(err, os.RemoveAll(dir))
}

// environment is that of every program of the cluster.
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
