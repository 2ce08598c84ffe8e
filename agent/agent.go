package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/properties"
	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/deviceplugin"
)

// Run runs an agent until ctx is done, then returns nil. It waits until an earlier
// agent of the same node has exited and the API server answers. It returns an error
// if something is wrong with the node, such as a missing directory.
func Run(ctx context.Context, options Options) error { return run(ctx, options, newServer) }

// server is the half of the agent that offers devices to the kubelet.
type server interface {
	device.Sink
	Run(ctx context.Context) error
}

// serverFunc creates the serving half.
type serverFunc func(dynamic.Interface, *instances.Store, prometheus.Registerer, Options) (server, error)

func newServer(client dynamic.Interface, store *instances.Store, metrics prometheus.Registerer, options Options) (server, error) {
	return deviceplugin.New(deviceplugin.Options{
		NodeName: options.NodeName, KubeletDir: options.KubeletDir, FieldManager: options.manager(),
		Client: client, Instances: store, Log: options.Logger, Metrics: metrics,
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

	client, err := dynamic.NewForConfig(options.Config)
	if err != nil {
		return fmt.Errorf("create the client of the API server: %w", err)
	}
	metricsListener, err := listenMetrics(options.MetricsAddress)
	if err != nil {
		return err
	}
	a, err := build(client, options, newServer)
	if err != nil {
		return err
	}
	defer a.close()
	registrations, err := registry.Listen(options.HandlersDir)
	if err != nil {
		return err
	}
	log.Info("Agent started", "node", options.NodeName, "handlersDir", options.HandlersDir, "apiServer", options.Config.Host)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.handlers.Serve(ctx, registrations) })
	group.Go(func() error { return a.handlers.Run(ctx) })
	group.Go(func() error { return a.server.Run(ctx) })
	group.Go(func() error { a.configurations.informer.RunWithContext(ctx); return nil })
	group.Go(func() error { a.instances.Run(ctx); return nil })
	group.Go(func() error {
		if !cache.WaitForCacheSync(ctx.Done(), a.synced...) {
			return nil
		}
		log.Info("Configurations and Instances are synced", "node", options.NodeName)
		return a.reconciler.run(ctx)
	})
	if metricsListener != nil {
		group.Go(func() error { return serveMetrics(ctx, metricsListener, a.metrics, a.ready, log) })
	}
	return ignoreCanceled(group.Wait())
}

// parts are the components of an agent.
type parts struct {
	handlers       *registry.Registry
	configurations *configurations
	instances      *instances.Store
	properties     *properties.Watcher
	streams        *streams.Supervisor
	server         server
	reconciler     *reconciler
	metrics        *prometheus.Registry
	synced         []cache.InformerSynced
}

func build(client dynamic.Interface, options Options, newServer serverFunc) (*parts, error) {
	log, queue := options.Logger, newQueue()
	changed := func(name types.NamespacedName) { queue.Add(name) }

	a := &parts{metrics: newMetrics(), handlers: registry.New(options.HandlersDir, log)}
	var err error
	if a.configurations, err = newConfigurations(client, options.NodeName, changed); err != nil {
		return nil, err
	}
	if a.instances, err = instances.New(client, options.NodeName, changed, log); err != nil {
		return nil, err
	}
	a.synced = []cache.InformerSynced{a.configurations.informer.HasSynced, a.instances.HasSynced}
	a.properties = properties.NewWatcher(client, options.AllowCrossNamespaceProperties, changed, log)
	a.streams = streams.NewSupervisor(a.handlers, changed, streams.NewMetrics(a.metrics), log)
	if a.server, err = newServer(client, a.instances, a.metrics, options); err != nil {
		return nil, err
	}
	a.reconciler = &reconciler{
		node: options.NodeName, configurations: a.configurations, properties: a.properties, streams: a.streams,
		publisher: publish.New(client, a.instances, options.NodeName, options.manager(), log),
		reporter:  reporter{client: client, manager: options.manager()},
		sink:      a.server, log: log, queue: queue,
		offered: map[types.NamespacedName][]device.Device{},
	}
	a.metrics.MustRegister(collector{handlers: a.handlers, instances: a.instances})
	return a, nil
}

// close stops the components that Run does not wait for.
func (a *parts) close() {
	a.reconciler.queue.ShutDown()
	a.streams.Close()
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
