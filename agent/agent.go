package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/embedded"
	"akri.sh/akri/agent/discover/properties"
	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/health"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/deviceplugin"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/kubeversion"
	"akri.sh/akri/internal/version"
)

// How long a loop may work without progress before the kubelet restarts the agent. A
// request to the API server ends within a minute, even if nothing answers; the serving
// loop waits for nothing. The kubelet may take minutes to know its Pods after the node has
// started.
const (
	workerLimit     = 3 * time.Minute
	servingLimit    = time.Minute
	accountingLimit = 10 * time.Minute
)

// Run runs an agent until ctx is done, then returns nil. It waits until an earlier
// agent of the same node has exited and the API server answers. It returns an error
// if something is wrong with the node, such as a missing directory.
func Run(ctx context.Context, options Options) error { return run(ctx, options, newServer) }

// deviceServer is the half of the agent that offers devices to the kubelet.
type deviceServer interface {
	device.Sink
	// InstanceEvent is an [instances.Handler].
	InstanceEvent(event instances.Event, instance *v0.Instance)
	Run(ctx context.Context) error
}

// clients are the clients of the API server.
type clients struct {
	dynamic.Interface
	core rest.Interface
}

// serverFunc creates the serving half.
type serverFunc func(clients, *instances.Store, prometheus.Registerer, *health.Monitor, Options) (deviceServer, error)

func newServer(
	c clients, store *instances.Store, metrics prometheus.Registerer, monitor *health.Monitor, options Options,
) (deviceServer, error) {
	return deviceplugin.New(deviceplugin.Options{
		NodeName: options.NodeName, KubeletDir: options.KubeletDir, FieldManager: v0.FieldManagerAgent,
		Client: c.Interface, Core: c.core, Instances: store, Log: options.Logger, Metrics: metrics,
		Heartbeat:  monitor.Loop("device plugins", servingLimit),
		Accounting: monitor.Loop("accounting of slots", cmp.Or(options.accountingLimit, accountingLimit)),
	})
}

func run(ctx context.Context, options Options, newServer serverFunc) error {
	if err := options.validate(); err != nil {
		return err
	}
	log := options.Logger
	unlock, err := lock(ctx, options.HandlersDir, log)
	if err != nil {
		return ignoreCanceled(err)
	}
	defer unlock()

	config := rest.CopyConfig(options.Config)
	config.Wrap(health.Transport)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create the client of the API server: %w", err)
	}
	coreClient, err := core.NewClient(config)
	if err != nil {
		return err
	}
	a, err := build(clients{client, coreClient}, options, newServer)
	if err != nil {
		return err
	}
	defer a.close()
	registrations, err := registry.Listen(options.HandlersDir)
	if err != nil {
		return err
	}
	a.embedded.Start()
	log.Info("Agent started", "version", version.String(), "node", options.NodeName, "handlersDir", options.HandlersDir,
		"apiServer", options.Config.Host)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kubeversion.Verify(ctx, config, log) })
	group.Go(func() error { return a.handlers.Serve(ctx, registrations) })
	group.Go(func() error { return a.handlers.Run(ctx) })
	group.Go(func() error { return a.handlers.Probe(ctx) })
	group.Go(func() error { return a.server.Run(ctx) })
	group.Go(func() error { a.configurations.informer.RunWithContext(ctx); return nil })
	group.Go(func() error { a.instances.Run(ctx, a.server.InstanceEvent); return nil })
	group.Go(func() error {
		if !cache.WaitForCacheSync(ctx.Done(), a.synced...) {
			return nil
		}
		log.Info("Configurations and Instances are synced", "node", options.NodeName)
		return a.reconciler.run(ctx)
	})
	group.Go(func() error {
		return serve(ctx, "--metrics-bind-address", options.MetricsAddress, metricsHandler(a.metrics, log))
	})
	group.Go(func() error {
		return serve(ctx, "--health-probe-bind-address", options.ProbeAddress, probeHandler(a.health.Check, a.ready))
	})
	return ignoreCanceled(group.Wait())
}

// parts are the components of an agent.
type parts struct {
	handlers       *registry.Registry
	configurations *configurations
	instances      *instances.Store
	properties     *properties.Watcher
	streams        *streams.Supervisor
	embedded       *embedded.Handlers
	server         deviceServer
	reconciler     *reconciler
	metrics        *prometheus.Registry
	health         *health.Monitor
	synced         []cache.InformerSynced
}

func build(client clients, options Options, newServer serverFunc) (*parts, error) {
	log, queue := options.Logger, newQueue()
	changed := func(name types.NamespacedName) { queue.Add(name) }

	a := &parts{
		metrics: newMetrics(), health: &health.Monitor{},
		handlers: registry.New(options.HandlersDir, options.NetworkHandlers, log, options.StaticHandlers...),
	}
	a.embedded = embedded.New(options.EmbeddedHandlers, options.HandlersDir, a.metrics, log)
	var err error
	if a.configurations, err = newConfigurations(client, options.NodeName, changed); err != nil {
		return nil, err
	}
	if a.instances, err = instances.New(client, options.NodeName, changed, log); err != nil {
		return nil, err
	}
	a.synced = []cache.InformerSynced{a.configurations.informer.HasSynced, a.instances.HasSynced}
	a.properties = properties.NewWatcher(client.core, options.AllowCrossNamespaceProperties, changed)
	a.streams = streams.NewSupervisor(a.handlers, options.HostPaths, changed, streams.NewMetrics(a.metrics), log)
	if a.server, err = newServer(client, a.instances, a.metrics, a.health, options); err != nil {
		return nil, err
	}
	a.reconciler = &reconciler{
		node: options.NodeName, configurations: a.configurations, properties: a.properties, streams: a.streams,
		publisher: publish.New(client, a.instances, options.NodeName, v0.FieldManagerAgent, log),
		reporter:  newReporter(client, v0.FieldManagerOfNode(options.NodeName), log),
		missing:   newMissing(cmp.Or(options.missingDelay, missingDelay)),
		sink:      a.server, registered: a.handlers.Has, refusal: a.handlers.Refusal, log: log, queue: queue,
		health: a.health, limit: cmp.Or(options.workerLimit, workerLimit),
	}
	a.metrics.MustRegister(a.reconciler.reporter, collector{handlers: a.handlers, instances: a.instances}, a.streams)
	return a, nil
}

// close stops the components that Run does not wait for.
func (a *parts) close() {
	a.reconciler.queue.ShutDown()
	a.streams.Close()
	a.embedded.Close() // after the streams, so that none breaks
	a.properties.Close()
}

func (a *parts) ready() error {
	for _, synced := range a.synced {
		if !synced() {
			return errors.New("waiting for the API server: Configurations and Instances are not synced")
		}
	}
	return nil
}

// ignoreCanceled returns nil if err is context.Canceled, and err otherwise.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
