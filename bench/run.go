package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/kubebox/cluster"
)

// bench holds the state of a run.
type bench struct {
	options
	dir        string
	executable string // of the controller
	cluster    *cluster.Cluster
	config     *rest.Config
	admin      dynamic.Interface
	creators   []dynamic.Interface
	bare       dynamic.Interface
	log        *auditLog
	servers    []int // process IDs of the control plane
	running    *process
	figures    []figure
	namespaces int
	planes     int // control planes started so far
	// defaultRates leaves the requests of Kubernetes' controllers at the rate that is
	// their default. Otherwise, the rate does not limit them.
	defaultRates bool
	// current is the namespace that the controller was last measured in, with
	// currentCount Instances; empty if there is none.
	current      string
	currentCount int
}

// run takes the measurements and prints the table. It leaves nothing behind except
// the requested files.
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
	if b.needsController() {
		b.logf("building the controller")
		if b.executable, err = buildProgram(ctx, controllerAgent, dir, o.Profiles != ""); err != nil {
			return err
		}
	}
	b.logf("starting a control plane")
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

// bareAgent is the user agent of the bare client.
const bareAgent = "bare"

// measure runs the requested parts.
func (b *bench) measure(ctx context.Context) error {
	steps := map[string]func(context.Context) error{
		"converge":  b.converge,
		"growth":    b.growth,
		"restart":   b.restart,
		"idle":      b.idle,
		"churn":     b.churn,
		"repair":    b.repair,
		"memory":    b.memory,
		"rollout":   b.rollout,
		"departure": b.departure,
		"agent":     b.agent,
		"fleet":     b.fleet,
	}
	for _, part := range parts {
		if !slices.Contains(b.Only, part) {
			continue
		}
		b.logf("part %s", part)
		if err := steps[part](ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return b.stopController()
}

// needsController reports whether a requested part runs the controller.
func (b *bench) needsController() bool {
	return slices.ContainsFunc(b.Only, func(part string) bool { return part != "agent" && part != "fleet" })
}

// logf logs progress.
func (b *bench) logf(format string, arguments ...any) {
	fmt.Fprintf(b.Log, "%s bench: %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, arguments...))
}

// add adds a row to the table and logs it.
func (b *bench) add(f figure) {
	b.figures = append(b.figures, f)
	b.logf("%s: %s; bare client: %s; limit: %s %s", f.What, f.Measured, f.Bare, f.Bar, f.verdict())
}

// namespace creates a namespace with the Configuration of the controller's workload
// in it.
func (b *bench) namespace(ctx context.Context) (string, error) {
	name, err := b.emptyNamespace(ctx)
	if err != nil {
		return "", err
	}
	return name, b.configure(ctx, newConfiguration(name))
}

// emptyNamespace creates a namespace.
func (b *bench) emptyNamespace(ctx context.Context) (string, error) {
	b.namespaces++
	name := fmt.Sprintf("bench-%d", b.namespaces)
	if _, err := b.admin.Resource(namespaces).Create(ctx, object("v1", "Namespace", "", name, nil), metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return name, nil
}

// configure creates a Configuration.
func (b *bench) configure(ctx context.Context, configuration *unstructured.Unstructured) error {
	_, err := b.admin.Resource(configurations).Namespace(configuration.GetNamespace()).Create(ctx, configuration, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Configuration: %w", err)
	}
	return nil
}

// clear deletes everything in a namespace, because no garbage collector may be
// running, and waits until the control plane has finished with that.
func (b *bench) clear(ctx context.Context, namespace string) error {
	for _, resource := range append([]schema.GroupVersionResource{configurations, instances}, children...) {
		client := b.admin.Resource(resource).Namespace(namespace)
		all := metav1.ListOptions{}
		if slices.Contains(children, resource) {
			all.LabelSelector = childSelector // Kubernetes creates a ConfigMap in each namespace again
		}
		one := all
		one.Limit = 1
		for {
			// The API server gives up after a minute, in which it deletes some thousand Services.
			if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil && !apierrors.IsTimeout(err) {
				return fmt.Errorf("delete all %s: %w", resource.Resource, err)
			}
			left, err := client.List(ctx, one)
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
	return b.awaitControlPlane(ctx)
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
