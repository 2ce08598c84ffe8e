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

// parts are what can be measured, in the order in which it is.
var parts = []string{"converge", "growth", "restart", "idle", "churn", "repair", "memory", "kill"}

// maxInstances bounds what a run makes.
const maxInstances = 5000

// options say what to measure.
type options struct {
	// Only are the parts to measure; empty: all but growth.
	Only []string
	// Instances are the numbers of Instances to converge. With the last of them
	// the other parts are measured.
	Instances []int
	// Rounds is how often controller and bare client take turns.
	Rounds int
	// Growth is the number of Instances of the part growth, at least 1500.
	Growth int
	// Idle is how long the controller is watched doing nothing.
	Idle time.Duration
	// Repairs is how many edits, and how many deletions, are repaired.
	Repairs int
	// Foreign is how many objects of others there are in the part memory.
	Foreign int
	// Kills is how often the controller is killed, at points that Seed decides.
	Kills int
	Seed  uint64
	// Profiles is a folder for profiles of the controller, which is then built
	// with a profiler; empty: none.
	Profiles string
	// JSON is a file for the raw numbers; empty: none.
	JSON string
	// Out gets the table, Log what is going on.
	Out, Log io.Writer
}

func (o *options) validate() error {
	for _, part := range o.Only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("there is no part %q: there are %s", part, strings.Join(parts, ", "))
		}
	}
	if len(o.Only) == 0 {
		o.Only = slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "growth" })
	}
	if len(o.Instances) == 0 {
		return errors.New("no number of Instances")
	}
	for _, n := range o.Instances {
		if n < 1 || n > maxInstances {
			return fmt.Errorf("%d Instances: must be 1 to %d", n, maxInstances)
		}
	}
	if o.Growth < 3*growthStep || o.Growth > maxInstances {
		return fmt.Errorf("growth to %d Instances: must be %d to %d", o.Growth, 3*growthStep, maxInstances)
	}
	if o.Rounds < 1 || o.Repairs < 1 || o.Foreign < 0 || o.Kills < 0 || o.Idle < 0 {
		return errors.New("rounds and repairs must be at least 1, other numbers not negative")
	}
	return nil
}

// bench is a run.
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
	servers    []int // process ids of etcd and the API server
	running    *process
	figures    []figure
	namespaces int
	planes     int // control planes so far
	// current is the namespace of the controller that runs, with so many
	// Instances; empty if there is none.
	current      string
	currentCount int
}

// run measures and prints the table. It leaves nothing but the files it was
// asked for.
func run(ctx context.Context, o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "akri-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
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
			err = errors.Join(err, b.running.end(syscall.SIGKILL))
		}
	}()
	host := machine()
	measured := b.measure(ctx)
	// What was measured until then is told even if the rest fails.
	fmt.Fprintf(b.Out, "\n%s\n\n", host)
	return errors.Join(measured, printTable(b.Out, b.figures), b.writeJSON(host))
}

// beginAnew exchanges the control plane for one that has no history.
func (b *bench) beginAnew(ctx context.Context) error {
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

func (b *bench) startCluster(ctx context.Context) error {
	b.planes++
	audit := filepath.Join(b.dir, fmt.Sprintf("audit-%d.log", b.planes))
	b.log = followLog(ctx, audit)
	var err error
	if b.cluster, err = cluster.Start(ctx, cluster.Config{AuditLog: audit, Controllers: whileKilling}); err != nil {
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

// whileKilling are the controllers that run while ours is killed. While
// something is timed, none does.
var whileKilling = []string{"serviceaccount-controller", "garbage-collector-controller", "namespace-controller"}

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
	if _, err := b.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd/configurations.akri.sh", "crd/instances.akri.sh"); err != nil {
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

// serversOf finds etcd and the API server of the cluster in a directory, which
// their command lines name.
func serversOf(dir string) ([]int, error) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, command := range commands {
		text, err := os.ReadFile(command)
		if err != nil {
			continue // it has ended
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

const bareAgent = "bare"

func (b *bench) measure(ctx context.Context) error {
	steps := map[string]func(context.Context) error{
		"converge": b.converge,
		"growth":   b.growth,
		"restart":  b.restart,
		"idle":     b.idle,
		"churn":    b.churn,
		"repair":   b.repair,
		"memory":   b.memory,
		"kill":     b.kill,
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

func (b *bench) say(format string, arguments ...any) {
	fmt.Fprintf(b.Log, "%s bench: %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, arguments...))
}

func (b *bench) add(f figure) {
	b.figures = append(b.figures, f)
	b.say("%s: %s; bare client: %s; bar: %s %s", f.What, f.Controller, f.Bare, f.Bar, f.verdict())
}

// namespace makes a namespace with the Configuration in it.
func (b *bench) namespace(ctx context.Context) (string, error) {
	b.namespaces++
	name := fmt.Sprintf("bench-%d", b.namespaces)
	if _, err := b.admin.Resource(namespaces).Create(ctx, object("v1", "Namespace", "", name, nil), metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("make a namespace: %w", err)
	}
	if _, err := b.admin.Resource(configurations).Namespace(name).Create(ctx, newConfiguration(name), metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("make a Configuration: %w", err)
	}
	return name, nil
}

// clear removes all that is in a namespace. Without the garbage collector,
// nobody else does.
func (b *bench) clear(ctx context.Context, namespace string) error {
	for _, resource := range append([]schema.GroupVersionResource{configurations, instances}, children...) {
		client := b.admin.Resource(resource).Namespace(namespace)
		if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("remove all %s: %w", resource.Resource, err)
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
				return fmt.Errorf("remove all %s: %w", resource.Resource, ctx.Err())
			}
		}
	}
	return nil
}

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

// machine describes where this runs, and how busy it is with other things.
func machine() string {
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
