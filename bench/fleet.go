package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/bench/hollow"
	"akri.sh/akri/bench/stub"
)

const (
	// hollowCommand is the hidden command that runs hollow agents.
	hollowCommand = "hollow-agents"
	// agentName is the name of the agent's executable, and the user agent of real and
	// hollow agents in the audit log.
	agentName = hollow.UserAgentName
	// quietFor is how long agents must not have written to count as settled. It is
	// longer than they delay a write.
	quietFor = 3 * time.Second
	// handlerMemory is the memory limit while handlers find the devices of many nodes.
	handlerMemory = 8 << 30
	// sharedCapacity is the capacity of shared devices.
	sharedCapacity = 5
)

// fleet is a number of hollow agents with their kubelets and handlers.
type fleet struct {
	b         *bench
	shape     shape
	dir       string
	namespace string
	kubelets  *stub.Kubelets
	nodes     []*stub.Kubelet
	agents    *hollow.Fleet
	// handler is that of the shape's nodes, late that of nodes that join later.
	handler, late *stub.Handler
}

// fleet measures each shape.
func (b *bench) fleet(ctx context.Context) error {
	// One handler finds the devices of all nodes. It may use half of the limit for that.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(handlerMemory))
	for i, text := range b.Shapes {
		s, err := parseShape(text)
		if err != nil {
			return err
		}
		perProcess, err := s.agentsPerProcess(b.Joins)
		if err != nil {
			return err
		}
		f := &fleet{b: b, shape: s, dir: filepath.Join(b.dir, fmt.Sprint("f", i))}
		if err := f.run(ctx, perProcess); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

// run measures the shape with up to perProcess agents in each process, and removes
// everything that it has created.
func (f *fleet) run(ctx context.Context, perProcess int) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.namespace, err = f.b.emptyNamespace(ctx); err != nil {
		return err
	}
	if f.kubelets, err = stub.NewKubelets(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.kubelets.Close()) }()
	log, err := f.b.openLog(hollowCommand)
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{hollowCommand, f.b.cluster.Kubeconfig(), f.dir}
	if f.agents, err = hollow.Start(f.shape.nodes(f.b.Joins), perProcess, arguments, log); err != nil {
		return err
	}
	defer func() {
		if f.agents != nil {
			err = errors.Join(err, f.agents.Stop())
		}
	}()
	served := make(chan error, 2)
	f.handler, f.late = f.newHandler("on-time"), f.newHandler("late")
	for _, handler := range []*stub.Handler{f.handler, f.late} {
		go func() { served <- handler.Serve(ctx) }()
	}
	defer func() {
		cancel()
		err = errors.Join(err, <-served, <-served)
	}()
	if err := f.measure(ctx); err != nil {
		return err
	}
	stopped := f.agents.Stop()
	f.agents = nil
	return errors.Join(stopped, f.b.clear(ctx, f.namespace))
}

// The names of the Configuration and of the handlers.
const (
	fleetConfiguration = "fleet"
	handlerName        = "bench"
)

func (f *fleet) newHandler(dir string) *stub.Handler {
	handler := stub.NewHandler(handlerName, filepath.Join(f.dir, dir), f.shape.Shared)
	handler.Set(stub.Devices(f.shape.Devices))
	return handler
}

// measure takes the measurements of the shape, step by step.
func (f *fleet) measure(ctx context.Context) error {
	base, err := f.memory(hollow.Command{Collect: true})
	if err != nil {
		return err
	}
	if err := f.start(ctx, f.shape.Nodes, f.handler); err != nil {
		return err
	}
	empty, err := f.memory(hollow.Command{Collect: true})
	if err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	full, err := f.memory(hollow.Command{Collect: true})
	if err != nil {
		return err
	}
	perAgent := func(memory usage) float64 { return float64(memory.now-base.now) / float64(f.shape.Nodes) / 1e6 }
	f.add(figure{
		What: "RSS per agent, empty and with its devices",
		Measured: fmt.Sprintf("%.2f MB, %.2f MB; processes: %d, together %.0f MB without agents, %.0f MB with them",
			perAgent(empty), perAgent(full), len(f.agents.PIDs()), float64(base.now)/1e6, float64(full.now)/1e6),
		Raw: map[string]any{"processes": len(f.agents.PIDs()), "base_bytes": base.now, "empty_bytes": empty.now, "full_bytes": full.now},
	})
	if err := f.rest(ctx); err != nil {
		return err
	}
	if !f.shape.Shared || f.b.Joins == 0 {
		return nil
	}
	return f.join(ctx)
}

// add adds a figure of the shape.
func (f *fleet) add(row figure) {
	row.What = fmt.Sprintf("%v: %s", f.shape, row.What)
	f.b.add(row)
}

// memory executes a command and returns the memory of the agents' processes.
func (f *fleet) memory(command hollow.Command) (usage, error) {
	if _, err := f.agents.Do(command); err != nil {
		return usage{}, err
	}
	return memoryOf(f.agents.PIDs()...)
}

// start starts agents, registers a handler with them, and returns when they have
// synced.
func (f *fleet) start(ctx context.Context, count int, handler *stub.Handler) error {
	first := len(f.nodes)
	for i := range count {
		kubelet, err := f.kubelets.Add(f.node(first + i).KubeletDir())
		if err != nil {
			return err
		}
		f.nodes = append(f.nodes, kubelet)
	}
	if _, err := f.agents.Do(hollow.Command{First: first, Start: count}); err != nil {
		return err
	}
	return inParallel(creators, func(worker int) error {
		for i := worker; i < count; i += creators {
			if err := handler.Register(ctx, f.node(first+i).HandlersDir()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fleet) node(number int) hollow.Node { return hollow.Node{Dir: f.dir, Number: number} }

// settle creates the Configuration and waits until every kubelet has all of its
// resources and no agent writes any more.
func (f *fleet) settle(ctx context.Context) error {
	before, err := f.agents.Do(hollow.Command{})
	if err != nil {
		return err
	}
	used, err := cpu(f.agents.PIDs()...)
	if err != nil {
		return err
	}
	capacity := int64(1)
	if f.shape.Shared {
		capacity = sharedCapacity
	}
	mark, began := f.b.log.mark(), time.Now()
	if err := f.b.configure(ctx, object("akri.sh/v0", "Configuration", f.namespace, fleetConfiguration, map[string]any{
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": handlerName}, "capacity": capacity},
	})); err != nil {
		return err
	}
	offered, err := f.awaitOffered(ctx, f.nodes)
	if err != nil {
		return err
	}
	requests, err := f.b.log.awaitQuiet(ctx, mark, agentName, quietFor)
	if err != nil {
		return err
	}
	total := offered.Sub(began)
	written := writes(requests)
	for _, r := range written {
		total = max(total, r.Done.Sub(began))
	}
	if err := f.audit(ctx, f.shape.Nodes); err != nil {
		return err
	}
	after, err := f.agents.Do(hollow.Command{})
	if err != nil {
		return err
	}
	usedNow, err := cpu(f.agents.PIDs()...)
	if err != nil {
		return err
	}
	received, sent := after.Received-before.Received, after.Sent-before.Sent
	outcomes := tallyOutcomes(requests)
	f.add(figure{
		What: "time to settle after the Configuration's creation",
		Measured: fmt.Sprintf("%.2f s, all resources at the kubelets after %.2f s; CPU of the agents %.2f s",
			total.Seconds(), offered.Sub(began).Seconds(), (usedNow - used).Seconds()),
		Raw: map[string]any{"seconds": total.Seconds(), "offered_seconds": offered.Sub(began).Seconds(), "warnings": after.Warnings},
	})
	f.add(figure{
		What: "requests of all agents until then",
		Measured: fmt.Sprintf("%d: %s; received %.1f MB, sent %.1f MB", len(requests), listCounts(outcomes),
			float64(received)/1e6, float64(sent)/1e6),
		Raw: map[string]any{"requests": outcomes, "received_bytes": received, "sent_bytes": sent},
	})
	if len(after.Warnings) > 0 {
		f.b.logf("warnings of the agents: %s", listCounts(after.Warnings))
	}
	return nil
}

// awaitOffered waits until kubelets have a healthy id of each device, and returns when
// that was.
func (f *fleet) awaitOffered(ctx context.Context, nodes []*stub.Kubelet) (time.Time, error) {
	const timeout = 30 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	missing := slices.Clone(nodes)
	for {
		missing = slices.DeleteFunc(missing, func(kubelet *stub.Kubelet) bool { return kubelet.Offered(fleetConfiguration) >= f.shape.Devices })
		if len(missing) == 0 {
			return time.Now(), nil
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return time.Time{}, fmt.Errorf("%d of %d kubelets do not have all resources: %w", len(missing), len(nodes), ctx.Err())
		}
	}
}

// audit returns an error unless the Instances are exactly those of the shape, and each
// shared one names the given number of nodes.
func (f *fleet) audit(ctx context.Context, nodes int) error {
	all, err := f.instances(ctx)
	if err != nil {
		return err
	}
	return f.shape.check(all, nodes)
}

func (f *fleet) instances(ctx context.Context) ([]unstructured.Unstructured, error) {
	all, err := f.b.admin.Resource(instances).Namespace(f.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the Instances: %w", err)
	}
	return all.Items, nil
}

// rest counts the requests of agents that have nothing to do.
func (f *fleet) rest(ctx context.Context) error {
	row, err := f.b.observeRest(ctx, f.agents.PIDs()...)
	if err != nil {
		return err
	}
	row.What = "writes and lists within " + row.What
	f.add(row)
	return nil
}
