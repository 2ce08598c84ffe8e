package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/agent/serve/witness"
	v0 "akri.sh/akri/api/v0"
)

// allocateDeadline is how long the kubelet may wait: a slow answer holds up every
// pod of the node, and the kubelet itself sets no limit.
const allocateDeadline = 2 * time.Second

// Instances is a watch of this node's Instances: it calls a handler with
// *v0.Instance, first for those that are there. A cache.SharedInformer is one.
type Instances interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Options of a Node. All are needed.
type Options struct {
	// NodeName as the API server knows it.
	NodeName string
	// KubeletDir is the kubelet's root folder.
	KubeletDir string
	// FieldManager under which slots are written.
	FieldManager string
	// Client writes Instances and, where the kubelet has no Pods API, reads this
	// node's pods. It should have no rate limit of its own.
	Client dynamic.Interface
	// Instances of this node.
	Instances Instances
	Log       *slog.Logger
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
}

// Node offers the devices of one node to its kubelet. It is a [device.Sink].
type Node struct {
	options   Options
	executor  *claims.Executor
	witness   *witness.Witness
	registrar *registrar
	metrics   *Metrics
	log       *slog.Logger

	queue   *queue        // what other goroutines have for the loop
	trigger chan struct{} // has room for one: look at the pods soon
	stopped chan struct{} // closed when the loop has ended
	patches sync.WaitGroup

	// All below belongs to the loop.
	started  time.Time
	machine  *slots.Machine
	names    *names
	services map[string]*served
	nextCall slots.Call
	answers  map[slots.Call]chan<- answer
}

var _ device.Sink = (*Node)(nil)

// served is a resource that the kubelet is offered.
type served struct {
	*service
	stop func() // ends its lifecycle and waits for that
}

// answer ends a call of the kubelet.
type answer struct {
	slots []int
	err   error
}

// New returns a Node, which serves while [Node.Run] runs.
func New(o Options) (*Node, error) {
	dir, err := filepath.Abs(o.KubeletDir)
	if err != nil {
		return nil, fmt.Errorf("kubelet folder: %w", err)
	}
	o.KubeletDir = dir
	if _, err := socketPath(filepath.Join(dir, devicesDir), ""); err != nil {
		return nil, err
	}
	witness, err := witness.New(dir, o.NodeName, o.Client, o.Log)
	if err != nil {
		return nil, fmt.Errorf("connect to the kubelet: %w", err)
	}
	m, err := NewMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	n := &Node{
		options:   o,
		executor:  claims.New(o.Client, o.NodeName, o.FieldManager),
		witness:   witness,
		registrar: newRegistrar(dir, o.Log),
		metrics:   m,
		log:       o.Log,
		queue:     newQueue(),
		trigger:   make(chan struct{}, 1),
		stopped:   make(chan struct{}),
		started:   time.Now(),
		machine:   slots.New(o.NodeName),
		names:     newNames(),
		services:  map[string]*served{},
		answers:   map[slots.Call]chan<- answer{},
	}
	_, err = o.Instances.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.seen(object, false) },
		UpdateFunc: func(_, object any) { n.seen(object, false) },
		DeleteFunc: func(object any) { n.seen(object, true) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch Instances: %w", err)
	}
	return n, nil
}

// Run serves until ctx ends; what is wrong with the node's folders is an error.
func (n *Node) Run(ctx context.Context) error {
	if err := removeSockets(n.options.KubeletDir); err != nil {
		close(n.stopped)
		return fmt.Errorf("remove the sockets of an earlier agent: %w", err)
	}
	var background sync.WaitGroup
	background.Go(func() { n.registrar.run(ctx, n.look) })
	background.Go(func() { _ = n.witness.Run(ctx) }) // ends with ctx only
	background.Go(func() { n.observe(ctx) })
	n.loop(ctx)
	close(n.stopped)
	n.end()
	background.Wait()
	n.patches.Wait() // each has its deadline; their outcome is read at the next start
	return nil
}

// loop is the only goroutine that touches the machine. When ctx ends it still
// answers the calls it has.
func (n *Node) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ended := ctx.Done()
	var last <-chan time.Time
	for ended != nil || len(n.answers) > 0 {
		if at, waits := n.machine.Deadline(); waits {
			timer.Reset(max(at-n.now(), time.Millisecond))
		}
		select {
		case <-ended:
			ended, last = nil, time.After(allocateDeadline)
		case <-last:
			return
		case <-n.queue.ready:
			for _, f := range n.queue.take() {
				f()
			}
		case <-timer.C:
			n.do(n.machine.Step(slots.Ticked{Now: n.now()}))
		}
		n.metrics.count(n.machine.State())
	}
}

// end tells the kubelet that nobody looks after the devices any more, and stops
// serving. Running containers are not disturbed by it.
func (n *Node) end() {
	var all sync.WaitGroup
	for _, s := range n.services {
		all.Go(func() {
			s.sayUnhealthy()
			s.stop()
		})
	}
	all.Wait()
}

var errStopping = errors.New("the agent is stopping")

// now is the machine's time.
func (n *Node) now() time.Duration { return time.Since(n.started) }

// step feeds the machine an event and carries out what it decides.
func (n *Node) step(e slots.Event) {
	n.do(n.machine.Step(slots.Ticked{Now: n.now()}))
	n.do(n.machine.Step(e))
}

// do carries out commands. None of them waits.
func (n *Node) do(commands []slots.Command) {
	for _, command := range commands {
		n.log.Debug("slots", "command", command.String())
		switch c := command.(type) {
		case slots.Answer:
			n.metrics.allocation(c.Err)
			if errors.Is(c.Err, slots.ErrTaken) {
				n.look()
			}
			n.reply(c.Call, answer{err: c.Err})
		case slots.Suggest:
			n.reply(c.Call, answer{slots: c.Slots})
		case slots.Claim:
			n.patch(c.Instance, c.Slots, n.executor.Claim, n.metrics.claims, func(r claims.Result) slots.Event {
				return slots.ClaimSettled{Instance: c.Instance, Slots: c.Slots, Outcome: r.Outcome, Record: r.Record}
			})
		case slots.Release:
			n.patch(c.Instance, c.Slots, n.executor.Release, n.metrics.releases, func(r claims.Result) slots.Event {
				return slots.ReleaseSettled{Instance: c.Instance, Slots: c.Slots, Outcome: r.Outcome, Record: r.Record, Tried: r.Tried}
			})
		case slots.Advertise:
			n.serve(c.Instance).setList(c.List)
		case slots.Withdraw:
			n.withdraw(c.Instance)
		case slots.Report:
			n.log.Error("contradiction about a slot; it is shown as unhealthy until somebody mends it", "slot", c.Slot.String(), "what", c.What)
		}
	}
}

func (n *Node) reply(call slots.Call, a answer) {
	if ch := n.answers[call]; ch != nil {
		ch <- a // has room for it
		delete(n.answers, call)
	}
}

// patch sends a claim or a release and feeds back what became of it.
func (n *Node) patch(instance string, numbers []int, send func(context.Context, types.NamespacedName, []int) claims.Result, counter *prometheus.CounterVec, settled func(claims.Result) slots.Event) {
	name := n.names.of(instance)
	n.patches.Go(func() {
		result := send(context.Background(), name, numbers) // has its own deadline, also while stopping
		counter.WithLabelValues(outcomes[result.Outcome]).Inc()
		if result.Outcome != slots.Written {
			n.log.Warn("slots were not written", "instance", name, "slots", numbers, "outcome", outcomes[result.Outcome], "error", result.Err)
		}
		n.queue.post(func() { n.step(settled(result)) })
	})
}

// serve returns the service of a resource, which is started if need be.
func (n *Node) serve(instance string) *served {
	if s := n.services[instance]; s != nil {
		return s
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{service: newService(instance, n)}
	resource := v0.ResourceName(instance)
	life := lifecycle{resource: resource, service: s.service, registrar: n.registrar, log: n.log.With("resource", resource)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		life.run(ctx)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
	if d, known := n.names.device(instance); known {
		s.setDevice(d)
	}
	n.services[instance] = s
	return s
}

// withdraw ends a resource. A later one of the same name has another socket, so
// nobody needs to wait for it.
func (n *Node) withdraw(instance string) {
	if s := n.services[instance]; s != nil {
		delete(n.services, instance)
		n.patches.Go(s.stop)
	}
}

// allocate and prefer are what the services ask; they wait for the loop.
func (n *Node) allocate(ctx context.Context, instance string, numbers []int) error {
	a := n.call(ctx, func(call slots.Call) slots.Event {
		return slots.AllocateRequested{Call: call, Instance: instance, Slots: numbers}
	})
	return a.err
}

func (n *Node) prefer(ctx context.Context, instance string, available, must []int, size int) ([]int, error) {
	a := n.call(ctx, func(call slots.Call) slots.Event {
		return slots.PreferenceAsked{Call: call, Instance: instance, Available: available, Must: must, Size: size}
	})
	return a.slots, a.err
}

func (n *Node) call(ctx context.Context, event func(slots.Call) slots.Event) answer {
	ctx, cancel := context.WithTimeout(ctx, allocateDeadline)
	defer cancel()
	answers, calls := make(chan answer, 1), make(chan slots.Call, 1)
	n.queue.post(func() {
		n.nextCall++
		n.answers[n.nextCall] = answers
		calls <- n.nextCall
		n.step(event(n.nextCall))
	})
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		n.queue.post(func() {
			select {
			case call := <-calls:
				n.step(slots.CallExpired{Call: call})
			default:
			}
		})
	case <-n.stopped:
	}
	select {
	case a := <-answers: // may have come at the last moment, else says why not
		return a
	case <-n.stopped:
		return answer{err: errStopping}
	}
}
