package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

	"akri.sh/akri/kubebox/build"
)

// The programs that are measured; their names are their user agents in the audit log.
const (
	controllerName = "akri-controller"
	agentName      = "akri-agent"
)

// buildPrograms compiles the programs into a directory, as they are shipped.
func buildPrograms(ctx context.Context, dir string) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w",
		"-o", dir+string(filepath.Separator), "./cmd/"+controllerName, "./cmd/"+agentName)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build Akri: %w\n%s", err, output)
	}
	return nil
}

// program is a running program of Akri.
type program struct {
	name    string
	command *exec.Cmd
	log     string        // the file
	metrics string        // the URL
	exited  chan struct{} // closed
	ended   bool
}

// start starts a program against the control plane, which stops it when it is closed.
func (b *bench) start(p *plane, name string, arguments ...string) (*program, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	address := listener.Addr().String()
	listener.Close()
	log, err := os.CreateTemp(p.dir, name)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer log.Close() // the process has its own descriptor
	command := exec.Command(filepath.Join(b.dir, name), append(arguments, "--metrics-bind-address="+address)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.cluster.Kubeconfig())
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	running := &program{
		name: name, command: command, log: log.Name(), metrics: "http://" + address + "/metrics", exited: make(chan struct{}),
	}
	go func() { _ = command.Wait(); close(running.exited) }()
	p.programs = append(p.programs, running)
	return running, nil
}

// end sends a signal that ends the program, and waits for that. A program that has exited
// by itself has measured nothing, which is an error.
func (p *program) end(signal os.Signal) error {
	const grace = 20 * time.Second
	if p.ended {
		return nil
	}
	p.ended = true
	select {
	case <-p.exited:
		return p.exitError()
	default:
	}
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(grace):
		return errors.Join(fmt.Errorf("%s did not exit within %v", p.name, grace), p.command.Process.Kill())
	}
}

// exitError tells why the program has exited by itself: its last line of log.
func (p *program) exitError() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", p.name, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s exited by itself: %v: %s", p.name, p.command.ProcessState, lines[len(lines)-1])
}

// usage is what a program has used: processor time in seconds, and resident memory in MB,
// with the part of it that is in file pages, and its peak.
type usage struct{ cpu, memory, file, peak float64 }

// usage reads what the program has used.
func (p *program) usage() (usage, error) {
	process, err := procfs.NewProc(p.command.Process.Pid)
	if err != nil {
		return usage{}, fmt.Errorf("find the process of %s: %w", p.name, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return usage{}, fmt.Errorf("read the processor time of %s: %w", p.name, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return usage{}, fmt.Errorf("read the memory of %s: %w", p.name, err)
	}
	if status.VmRSS == 0 {
		return usage{}, fmt.Errorf("read the memory of %s: it has exited", p.name)
	}
	const mb = 1e6
	return usage{
		cpu: stat.CPUTime(), memory: float64(status.VmRSS) / mb, file: float64(status.RssFile) / mb, peak: float64(status.VmHWM) / mb,
	}, nil
}

// metric returns the sum of all series of a metric of the program.
func (p *program) metric(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read the metrics of %s: %w", p.name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read the metrics of %s: %s", p.name, response.Status)
	}
	return sumOf(response.Body, name)
}

// sumOf returns the sum of all series of a metric. A metric that is missing is an error, so
// that it is not a zero in the table.
func sumOf(text io.Reader, name string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return 0, fmt.Errorf("parse the metrics: %w", err)
	}
	family := families[name]
	if family == nil {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	sum := 0.0
	for _, series := range family.GetMetric() {
		sum += series.GetCounter().GetValue() + series.GetGauge().GetValue() // one of them is nil
	}
	return sum, nil
}
