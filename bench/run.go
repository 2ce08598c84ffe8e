package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

// parts are the parts of a run, in the order in which they are measured.
var parts = []string{"converge", "growth", "restart", "idle", "churn", "repair", "memory"}

// maxInstances bounds the number of Instances of a run.
const maxInstances = 5000

// options are the settings of a run.
type options struct {
	// Only lists the parts to measure; empty: all but growth.
	Only []string
	// Instances are the numbers of Instances to converge. The other parts are
	// measured with the last of them.
	Instances []int
	// Rounds is how many times the controller and the bare client are measured.
	Rounds int
	// Growth is the number of Instances of the part growth, at least 1500.
	Growth int
	// Idle is how long the controller is observed at rest.
	Idle time.Duration
	// Repairs is the number of edits, and of deletions, to be repaired.
	Repairs int
	// Foreign is the number of unrelated objects in the part memory.
	Foreign int
	// Profiles is a directory for profiles of the controller, which is then built
	// with a profiler; empty: none.
	Profiles string
	// JSON is a file for the raw numbers; empty: none.
	JSON string
	// Out receives the table, Log the progress.
	Out, Log io.Writer
}

func (o *options) validate() error {
	for _, part := range o.Only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("unknown part %q: choose from %s", part, strings.Join(parts, ", "))
		}
	}
	if len(o.Only) == 0 {
		o.Only = slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "growth" })
	}
	if len(o.Instances) == 0 {
		return errors.New("the number of Instances is missing")
	}
	for _, n := range o.Instances {
		if n < 1 || n > maxInstances {
			return fmt.Errorf("%d Instances: must be from 1 to %d", n, maxInstances)
		}
	}
	if o.Growth < 3*growthStep || o.Growth > maxInstances {
		return fmt.Errorf("growth to %d Instances: must be from %d to %d", o.Growth, 3*growthStep, maxInstances)
	}
	if o.Rounds < 1 || o.Repairs < 1 || o.Foreign < 0 || o.Idle < 0 {
		return errors.New("rounds and repairs must be at least 1, and other numbers not negative")
	}
	return nil
}

// bench is the state of a run.
type bench struct {
	options
	dir        string
	executable string
	cluster    *cluster.Cluster
	config     *rest.Config
	admin      dynamic.Interface
	creators   []dynamic.Interface
	bare       dynamic.Interface
	log        *auditLog
	servers    []int // process IDs of etcd and the API server
	running    *process
	figures    []figure
	namespaces int
	planes     int // control planes started so far
	// current is the namespace of the running controller, which has currentCount
	// Instances; empty if there is none.
	current      string
	currentCount int
}

// run measures and prints the table. It leaves nothing behind but the requested
// files.
func run(ctx context.Context, o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "akri-bench-")
	if err != nil {
		return fmt.Errorf("create a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	b := &bench{options: o, dir: dir}
	b.say("building the controller")
	if b.executable, err = buildController(ctx, dir, o.Profiles != ""); err != nil {
		return err
	}
	b.say("starting a control plane")
	if err := b.startCluster(ctx); err != nil {
		return err
	}
	defer func() {
		if b.cluster != nil {
			err = errors.Join(err, b.cluster.Stop())
		}
	}()
	defer func() {
		if b.running != nil {
			err = errors.Join(err, b.running.stop(syscall.SIGKILL))
		}
	}()
	host := describeMachine()
	measured := b.measure(ctx)
	// The figures so far are printed even if a later part fails.
	fmt.Fprintf(b.Out, "\n%s\n\n", host)
	return errors.Join(measured, printTable(b.Out, b.figures), b.writeJSON(host))
}

// replaceCluster replaces the control plane by one without a history.
func (b *bench) replaceCluster(ctx context.Context) error {
	if err := b.stopController(); err != nil {
		return err
	}
	err := b.cluster.Stop()
	b.cluster = nil
	if err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	b.current, b.currentCount = "", 0
	return b.startCluster(ctx)
}

// startCluster starts a control plane and prepares it for the measurements.
func (b *bench) startCluster(ctx context.Context) error {
	b.planes++
	audit := filepath.Join(b.dir, fmt.Sprintf("audit-%d.log", b.planes))
	b.log = followLog(ctx, audit)
	var err error
	if b.cluster, err = cluster.Start(ctx, cluster.Config{AuditLog: audit, Controllers: []string{"serviceaccount-controller"}}); err != nil {
		b.cluster = nil
		return fmt.Errorf("start a control plane: %w", err)
	}
	err = b.prepareCluster(ctx)
	if err != nil {
		err = errors.Join(err, b.cluster.Stop())
		b.cluster = nil
	}
	return err
}

// prepareCluster stops all controllers of Kubernetes, installs the CRDs and makes
// the clients.
func (b *bench) prepareCluster(ctx context.Context) error {
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		if err := b.cluster.Do(ctx, cluster.Stop, component); err != nil {
			return err
		}
	}
	var err error
	if b.servers, err = serversOf(b.cluster.Dir()); err != nil {
		return err
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	if _, err := b.cluster.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, "config/crd")); err != nil {
		return err
	}
	_, err = b.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s",
		"crd/configurations.akri.sh", "crd/instances.akri.sh")
	if err != nil {
		return err
	}
	if b.config, err = clientcmd.BuildConfigFromFlags("", b.cluster.Kubeconfig()); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if b.admin, err = connect(b.config, "bench"); err != nil {
		return err
	}
	if b.bare, err = connect(b.config, bareAgent); err != nil {
		return err
	}
	b.creators = nil
	for range creators {
		client, err := connect(b.config, "agents")
		if err != nil {
			return err
		}
		b.creators = append(b.creators, client)
	}
	return nil
}

// serversOf returns the process IDs of etcd and the API server whose command lines
// name the run directory dir.
func serversOf(dir string) ([]int, error) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, command := range commands {
		text, err := os.ReadFile(command)
		if err != nil {
			continue // it has exited
		}
		program, rest, _ := strings.Cut(string(text), "\x00")
		if name := filepath.Base(program); name != "etcd" && name != "kube-apiserver" || !strings.Contains(rest, dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(command)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		return nil, fmt.Errorf("found %d processes of etcd and the API server, want 2", len(pids))
	}
	return pids, nil
}

// bareAgent is the user agent of the bare client.
const bareAgent = "bare"

// measure runs the requested parts.
func (b *bench) measure(ctx context.Context) error {
	steps := map[string]func(context.Context) error{
		"converge": b.converge,
		"growth":   b.growth,
		"restart":  b.restart,
		"idle":     b.idle,
		"churn":    b.churn,
		"repair":   b.repair,
		"memory":   b.memory,
	}
	for _, part := range parts {
		if !slices.Contains(b.Only, part) {
			continue
		}
		b.say("part %s", part)
		if err := steps[part](ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return b.stopController()
}

// say logs progress.
func (b *bench) say(format string, arguments ...any) {
	fmt.Fprintf(b.Log, "%s bench: %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, arguments...))
}

// add adds a row to the table and logs it.
func (b *bench) add(f figure) {
	b.figures = append(b.figures, f)
	b.say("%s: %s; bare client: %s; bar: %s %s", f.What, f.Controller, f.Bare, f.Bar, f.verdict())
}

// namespace creates a namespace with the Configuration in it.
func (b *bench) namespace(ctx context.Context) (string, error) {
	b.namespaces++
	name := fmt.Sprintf("bench-%d", b.namespaces)
	if _, err := b.admin.Resource(namespaces).Create(ctx, object("v1", "Namespace", "", name, nil), metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	if _, err := b.admin.Resource(configurations).Namespace(name).Create(ctx, newConfiguration(name), metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create a Configuration: %w", err)
	}
	return name, nil
}

// clear deletes everything in a namespace, because no garbage collector is running.
func (b *bench) clear(ctx context.Context, namespace string) error {
	for _, resource := range append([]schema.GroupVersionResource{configurations, instances}, children...) {
		client := b.admin.Resource(resource).Namespace(namespace)
		if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("delete all %s: %w", resource.Resource, err)
		}
		for {
			left, err := client.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return fmt.Errorf("list %s: %w", resource.Resource, err)
			}
			if len(left.Items) == 0 {
				break
			}
			if !sleep(ctx, 50*time.Millisecond) {
				return fmt.Errorf("delete all %s: %w", resource.Resource, ctx.Err())
			}
		}
	}
	return nil
}

// writeJSON writes the raw numbers, if requested.
func (b *bench) writeJSON(host string) error {
	if b.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"machine": host, "figures": b.figures}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the numbers as JSON: %w", err)
	}
	return os.WriteFile(b.JSON, append(text, '\n'), 0o644)
}

// describeMachine describes the machine and its load.
func describeMachine() string {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			return "?"
		}
		return strings.TrimSpace(string(text))
	}
	model, cores := "?", 0
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			model = strings.TrimSpace(value)
		case "processor":
			cores++
		}
	}
	memory, _, _ := strings.Cut(read("/proc/meminfo"), "\n")
	return fmt.Sprintf("%s; %d x %s; %s; Linux %s; load at the start %s", time.Now().Format(time.DateOnly), cores, model,
		strings.Join(strings.Fields(memory), " "), read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"))
}
