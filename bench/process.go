package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"akri.sh/akri/kubebox/build"
)

// controllerAgent is the name of the controller's executable, and thus its user agent
// in the audit log.
const controllerAgent = "akri-controller"

// profilerVariable is the environment variable with the address at which a
// program built with a profiler serves its profiles.
const profilerVariable = "AKRI_BENCH_PPROF"

// profiler is the source of a file that is compiled into a program.
const profiler = `package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
)

func init() {
	go http.ListenAndServe(os.Getenv("` + profilerVariable + `"), nil)
}
`

// buildProgram compiles a program of cmd as it is shipped, or with a profiler in it,
// without changing any file of the checkout.
func buildProgram(ctx context.Context, name, dir string, profiled bool) (string, error) {
	root, err := build.Root()
	if err != nil {
		return "", err
	}
	executable := filepath.Join(dir, name)
	arguments := []string{"build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", executable}
	if profiled {
		source, overlay := filepath.Join(dir, "profiler.go"), filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(source, []byte(profiler), 0o600); err != nil {
			return "", fmt.Errorf("write the profiler: %w", err)
		}
		text, err := json.Marshal(map[string]any{
			"Replace": map[string]string{filepath.Join(root, "cmd", name, "profiler.go"): source},
		})
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(overlay, text, 0o600); err != nil {
			return "", fmt.Errorf("write the overlay: %w", err)
		}
		arguments = append(arguments, "-overlay", overlay)
	}
	command := exec.CommandContext(ctx, "go", append(arguments, "./cmd/"+name)...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return executable, nil
}

// process is a running program of Akri.
type process struct {
	name    string
	command *exec.Cmd
	exited  chan error
	metrics string
	pprof   string
}

// pid returns the process ID.
func (p *process) pid() int { return p.command.Process.Pid }

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// startProgram starts a program that buildProgram has built.
func (b *bench) startProgram(executable string, arguments ...string) (*process, error) {
	name := filepath.Base(executable)
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	profiles, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := b.openLog(name)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own descriptor
	command := exec.Command(executable, append(arguments, "--metrics-bind-address="+metrics)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.Kubeconfig(), profilerVariable+"="+profiles)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{
		name: name, command: command, exited: make(chan error, 1), metrics: "http://" + metrics + "/metrics", pprof: "http://" + profiles,
	}
	go func() { p.exited <- command.Wait() }()
	return p, nil
}

// openLog opens the log of a program.
func (b *bench) openLog(name string) (*os.File, error) {
	log, err := os.OpenFile(filepath.Join(b.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	return log, nil
}

// startController starts the controller. If it is still running at the end, run kills it.
func (b *bench) startController() (*process, error) {
	p, err := b.startProgram(b.executable, "--leader-elect=false", "--workers="+strconv.Itoa(workers),
		"--health-probe-bind-address=0",
		"--node-grace=0") // the Instances' nodes do not exist
	if err != nil {
		return nil, err
	}
	b.running = p
	return p, nil
}

// stop sends a signal, SIGTERM or SIGKILL, and waits until the process has exited.
func (p *process) stop(signal syscall.Signal) error {
	const grace = 20 * time.Second
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.exited: //nolint:errcheck // a process that was stopped by a signal always fails
	case <-time.After(grace):
		return errors.Join(fmt.Errorf("%s did not exit within %v", p.name, grace), p.command.Process.Kill())
	}
	return nil
}

// stopController stops the controller if it is running.
func (b *bench) stopController() error {
	if b.running == nil {
		return nil
	}
	p := b.running
	b.running = nil
	return p.stop(syscall.SIGTERM)
}

// usage is the resident memory of a process in bytes: its current size, the part
// of that in file pages, and its peak.
type usage struct{ now, file, peak int64 }

// memory returns the memory that the process uses.
func (p *process) memory() (usage, error) { return memoryOf(p.pid()) }

// memoryOf returns the memory that processes use together.
func memoryOf(pids ...int) (usage, error) {
	var sum usage
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return usage{}, fmt.Errorf("read the memory of a process: %w", err)
		}
		u, err := parseMemory(string(text))
		if err != nil {
			return usage{}, err
		}
		sum = usage{now: sum.now + u.now, file: sum.file + u.file, peak: sum.peak + u.peak}
	}
	return sum, nil
}

// parseMemory parses /proc/PID/status.
func parseMemory(status string) (usage, error) {
	var u usage
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		value, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("read %q: %w", line, err)
		}
		switch fields[0] {
		case "VmRSS:":
			u.now = value << 10
		case "RssFile:":
			u.file = value << 10
		case "VmHWM:":
			u.peak = value << 10
		}
	}
	if u.now == 0 {
		return usage{}, errors.New("no VmRSS: the process has exited")
	}
	return u, nil
}

// cpu returns the processor time that processes have used together.
func cpu(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		path := fmt.Sprintf("/proc/%d/stat", pid)
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		used, err := parseCPU(string(text))
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", path, err)
		}
		sum += used
	}
	return sum, nil
}

// parseCPU parses /proc/PID/stat.
func parseCPU(stat string) (time.Duration, error) {
	const ticks = 100                                               // per second: USER_HZ on all current architectures
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // the program's name may contain anything
	if len(fields) < 13 {
		return 0, errors.New("too short")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks, errors.Join(err1, err2)
}

// gauges reads the process's metrics whose lines start with one of the names.
func (p *process) gauges(ctx context.Context, names ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", p.name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the metrics of %s: %s", p.name, response.Status)
	}
	return parseMetrics(response.Body, names)
}

// parseMetrics returns, by name, the sum of the values of all lines that start with it.
func parseMetrics(text io.Reader, names []string) (map[string]float64, error) {
	found := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		for _, name := range names {
			if !strings.HasPrefix(lines.Text(), name) {
				continue
			}
			fields := strings.Fields(lines.Text())
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return nil, fmt.Errorf("read the metric %q: %w", lines.Text(), err)
			}
			found[name] += value
		}
	}
	return found, lines.Err()
}

// The controller's metrics that the measurements read, by the start of their lines.
const (
	reconciles = `controller_runtime_reconcile_total{controller="instance"`
	depth      = `workqueue_depth{`
)

// restFor is how long a controller must reconcile nothing to count as idle.
const restFor = 2 * time.Second

// awaitRest waits until the controller has reconciled at least count Instances, and
// then nothing for restFor.
func (p *process) awaitRest(ctx context.Context, count int) error {
	const timeout = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, since := -1.0, time.Now()
	for {
		values, err := p.gauges(ctx, reconciles, depth)
		if err == nil && values[reconciles] == last && last >= float64(count) && values[depth] == 0 {
			if time.Since(since) >= restFor {
				return nil
			}
		} else {
			last, since = values[reconciles], time.Now()
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			return fmt.Errorf("the controller exited: %w", err)
		default:
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the controller did not become idle: %w (%v)", ctx.Err(), values)
		}
	}
}
