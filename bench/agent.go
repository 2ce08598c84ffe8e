package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"akri.sh/akri/bench/stub"
	"akri.sh/akri/discovery"
)

// manyDevices is the number of devices for the measurements with many.
const manyDevices = 50

// maxNamespaceDevices is the number of devices that an agent publishes for one namespace.
const maxNamespaceDevices = 1000

// The limits for this part: milliseconds and MB.
const (
	maxMessageMedian = 4
	maxMessageP95    = 8
	maxLeaveP95      = 12
	maxManyVisible   = 100
	maxEmptyMemory   = 18
	maxFullMemory    = 22
)

// agentBench is a running agent, as it is shipped, with a kubelet and a handler.
type agentBench struct {
	b         *bench
	namespace string
	dir       string // of the handlers' and the agent's sockets
	process   *process
	kubelet   *stub.Kubelet
	local     *stub.Handler
	devices   int // created so far
}

// agent measures one agent.
func (b *bench) agent(ctx context.Context) (err error) {
	b.logf("building the agent")
	executable, err := buildProgram(ctx, agentName, b.dir, b.Profiles != "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agentBench{b: b, dir: filepath.Join(b.dir, "a", "h")}
	if a.namespace, err = b.emptyNamespace(ctx); err != nil {
		return err
	}
	kubelets, err := stub.NewKubelets()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kubelets.Close()) }()
	kubeletDir := filepath.Join(b.dir, "a", "k")
	if a.kubelet, err = kubelets.Add(kubeletDir); err != nil {
		return err
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil { // the agent does not create it
		return fmt.Errorf("create the directory of the handlers: %w", err)
	}
	a.process, err = b.startProgram(executable, "--node-name=bench", "--discovery-handlers-dir="+a.dir, "--kubelet-dir="+kubeletDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.process.stop(syscall.SIGTERM)) }()
	a.local = stub.NewHandler("local", a.dir, false)
	shared := stub.NewHandler("shared", a.dir, true)
	served := make(chan error, 2)
	go func() { served <- a.local.Serve(ctx) }()
	go func() { served <- shared.Serve(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-served, <-served)
	}()
	if err := a.local.Register(ctx, a.dir); err != nil { // also waits until the agent serves
		return err
	}
	if err := a.measure(ctx); err != nil {
		return err
	}
	if err := a.allocate(ctx, shared); err != nil {
		return err
	}
	return b.clear(ctx, a.namespace)
}

// measure takes the measurements with local devices. Memory comes first: the resource
// of a device that has left remains for half a minute.
func (a *agentBench) measure(ctx context.Context) error {
	if err := a.rest(ctx, "without devices", maxEmptyMemory); err != nil {
		return err
	}
	if err := a.configure(ctx, "local", 1); err != nil {
		return err
	}
	count, limit := a.b.Devices, float64(maxFullMemory)
	if count != manyDevices {
		limit = math.Inf(1)
	}
	a.local.Set(a.next(count))
	all := func() bool { return a.kubelet.Offered("local") >= count && len(a.kubelet.Resources()) > count }
	if err := a.awaitKubelet(ctx, all); err != nil {
		return err
	}
	if err := a.rest(ctx, fmt.Sprintf("with %d Instances", count), limit); err != nil {
		return err
	}
	a.local.Set(nil)
	if err := a.awaitKubelet(ctx, func() bool { return len(a.kubelet.Resources()) == 0 }); err != nil {
		return err
	}
	if err := a.rest(ctx, "after they have left", limit); err != nil {
		return err
	}
	if err := a.messages(ctx); err != nil {
		return err
	}
	return a.many(ctx)
}

// configure creates a Configuration for the handler with the same name.
func (a *agentBench) configure(ctx context.Context, name string, capacity int64) error {
	return a.b.configure(ctx, object("akri.sh/v0", "Configuration", a.namespace, name, map[string]any{
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": name}, "capacity": capacity},
	}))
}

// next returns devices that have not existed before.
func (a *agentBench) next(count int) []discovery.Device {
	a.devices += count
	return stub.Devices(a.devices)[a.devices-count:]
}

// many measures many devices in one message.
func (a *agentBench) many(ctx context.Context) error {
	const rounds = 5
	events, err := a.watch(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	var visible, offered []float64
	for range rounds {
		sleep(ctx, messagePause)
		devices, began := a.next(manyDevices), time.Now()
		a.local.Set(devices)
		if err := awaitEvents(ctx, events, watch.Added, manyDevices); err != nil {
			return err
		}
		visible = append(visible, milliseconds(time.Since(began)))
		if err := a.awaitKubelet(ctx, func() bool { return a.kubelet.Offered("local") >= manyDevices }); err != nil {
			return err
		}
		offered = append(offered, milliseconds(time.Since(began)))
		sleep(ctx, messagePause)
		a.local.Set(nil)
		if err := awaitEvents(ctx, events, watch.Deleted, manyDevices); err != nil {
			return err
		}
		if err := a.awaitKubelet(ctx, func() bool { return a.kubelet.Offered("local") == 0 }); err != nil {
			return err
		}
	}
	a.b.add(manyRow(visible, offered))
	return nil
}

// manyRow returns the row for the milliseconds until many Instances are visible, and
// their resources at the kubelet.
func manyRow(visible, offered []float64) figure {
	return figure{
		What: fmt.Sprintf("%d devices in one message, median of %d: last Instance; all resources at the kubelet",
			manyDevices, len(visible)),
		Measured: fmt.Sprintf("%.0f ms; %.0f ms", median(visible), median(offered)),
		Bar:      fmt.Sprintf("<= %d ms (Instance)", maxManyVisible), Met: median(visible) <= maxManyVisible,
		Raw: map[string]any{"visible_ms": visible, "offered_ms": offered},
	}
}

// watch watches the Instances of the namespace.
func (a *agentBench) watch(ctx context.Context) (watch.Interface, error) {
	events, err := a.b.admin.Resource(instances).Namespace(a.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch the Instances: %w", err)
	}
	return events, nil
}

// awaitEvents waits for count events of one type.
func awaitEvents(ctx context.Context, events watch.Interface, kind watch.EventType, count int) error {
	const timeout = time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for count > 0 {
		select {
		case event, open := <-events.ResultChan():
			switch {
			case !open:
				return errors.New("the watch was closed")
			case event.Type == kind:
				count--
			}
		case <-ctx.Done():
			return fmt.Errorf("%d events %s are missing: %w", count, kind, ctx.Err())
		}
	}
	return nil
}

// awaitKubelet waits until the kubelet is in a state.
func (a *agentBench) awaitKubelet(ctx context.Context, reached func() bool) error {
	const timeout = 5 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for !reached() {
		if !sleep(ctx, time.Millisecond) {
			return fmt.Errorf("the kubelet has %d resources: %w", len(a.kubelet.Resources()), ctx.Err())
		}
	}
	return nil
}

// rest measures the memory and the requests of an agent that has nothing to do.
func (a *agentBench) rest(ctx context.Context, state string, maxMemory float64) error {
	if _, err := a.b.log.awaitQuiet(ctx, a.b.log.mark(), agentName, quietFor); err != nil {
		return err
	}
	row, err := a.b.observeRest(ctx, a.process.pid())
	if err != nil {
		return err
	}
	row.What = fmt.Sprintf("agent %s: writes and lists within %s", state, row.What)
	a.b.add(row)
	memory, err := a.process.memory()
	if err != nil {
		return err
	}
	a.b.add(residentRow(state, memory, maxMemory))
	return a.b.profileHeap(ctx, a.process, "agent "+state)
}

// residentRow returns the row for the memory of an agent in a state; the limit is in MB,
// and infinite if there is none.
func residentRow(state string, memory usage, maxMemory float64) figure {
	now := float64(memory.now) / 1e6
	row := figure{
		What: "RSS of the agent " + state,
		Measured: fmt.Sprintf("%.1f MB, including %.1f MB of file pages; peak %.1f MB",
			now, float64(memory.file)/1e6, float64(memory.peak)/1e6),
		Raw: map[string]any{"bytes": memory.now, "file_bytes": memory.file, "peak_bytes": memory.peak},
	}
	if !math.IsInf(maxMemory, 1) {
		row.Bar, row.Met = fmt.Sprintf("<= %.0f MB", maxMemory), now <= maxMemory
	}
	return row
}

// observeRest counts the requests and the processor time of agents at rest. The name
// of the row it returns is the time.
func (b *bench) observeRest(ctx context.Context, pids ...int) (figure, error) {
	mark := b.log.mark()
	before, err := cpu(pids...)
	if err != nil {
		return figure{}, err
	}
	if !sleep(ctx, b.Rest) {
		return figure{}, ctx.Err()
	}
	after, err := cpu(pids...)
	if err != nil {
		return figure{}, err
	}
	requests, err := b.log.awaitQuiet(ctx, mark, agentName, 0)
	if err != nil {
		return figure{}, err
	}
	return restRow(b.Rest, after-before, requests), nil
}

// restRow returns the row for the requests and the processor time of agents at rest for
// a time, which is its name.
func restRow(rest, used time.Duration, requests []auditLine) figure {
	refused := 0
	for _, r := range requests {
		if r.isWrite() || r.Verb == "list" {
			refused++
		}
	}
	percent := 100 * used.Seconds() / rest.Seconds()
	return figure{
		What:     fmt.Sprintf("%v at rest", rest),
		Measured: fmt.Sprintf("%d; other requests: %d; CPU %.2f %%", refused, len(requests)-refused, percent),
		Bar:      "0", Met: refused == 0,
		Raw: map[string]any{"requests": tallyOutcomes(requests), "cpu_percent": percent, "seconds": rest.Seconds()},
	}
}
