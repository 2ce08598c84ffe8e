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
	"akri.sh/akri/agent/serve/deviceplugin"
)

// Run is an agent: it works until ctx ends, then returns nil. It waits for an
// agent of the same node that is ending, and for the API server; what it finds
// wrong with its own surroundings is an error.
func Run(ctx context.Context, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	log := options.Logger
	unlock, err := lock(ctx, options.HandlersDirectory, log)
	if err != nil {
		return ignoreEnd(err)
	}
	defer unlock()

	client, err := dynamic.NewForConfig(options.Config)
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	metricsListener, err := listenMetrics(options.MetricsAddress)
	if err != nil {
		return err
	}
	a, err := build(client, options)
	if err != nil {
		return err
	}
	defer a.close()
	registrations, err := registry.Listen(options.HandlersDirectory)
	if err != nil {
		return err
	}
	log.Info("agent started", "node", options.NodeName, "handlers", options.HandlersDirectory, "server", options.Config.Host)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.handlers.Serve(ctx, registrations) })
	group.Go(func() error { return a.handlers.Run(ctx) })
	group.Go(func() error { return a.kubelet.Run(ctx) })
	group.Go(func() error { a.configurations.informer.RunWithContext(ctx); return nil })
	group.Go(func() error { a.instances.Informer().RunWithContext(ctx); return nil })
	group.Go(func() error {
		if !cache.WaitForCacheSync(ctx.Done(), a.synced...) {
			return nil
		}
		log.Info("Configurations and Instances are known", "node", options.NodeName)
		return a.reconciler.run(ctx)
	})
	if metricsListener != nil {
		group.Go(func() error { return serveMetrics(ctx, metricsListener, a.metrics, a.ready, log) })
	}
	return ignoreEnd(group.Wait())
}

// kubeletSide is the half of the agent that offers devices to the kubelet.
type kubeletSide interface {
	device.Sink
	Run(ctx context.Context) error
}

// parts of an agent.
type parts struct {
	handlers       *registry.Registry
	configurations *configurations
	instances      *publish.Instances
	properties     *properties.Watcher
	streams        *streams.Supervisor
	kubelet        kubeletSide
	reconciler     *reconciler
	metrics        *prometheus.Registry
	synced         []cache.InformerSynced
}

func build(client dynamic.Interface, options Options) (*parts, error) {
	log, queue := options.Logger, newQueue()
	changed := func(name types.NamespacedName) { queue.Add(name) }

	a := &parts{metrics: newMetrics(), handlers: registry.New(options.HandlersDirectory, log)}
	var err error
	if a.configurations, err = newConfigurations(client, options.NodeName, changed); err != nil {
		return nil, err
	}
	if a.instances, err = publish.NewInstances(client, options.NodeName, changed); err != nil {
		return nil, err
	}
	a.synced = []cache.InformerSynced{a.configurations.informer.HasSynced, a.instances.Informer().HasSynced}
	a.properties = properties.NewWatcher(client, options.AllowCrossNamespaceProperties, changed, log)
	a.streams = streams.NewSupervisor(a.handlers, changed, streams.NewMetrics(a.metrics), log)
	if a.kubelet, err = kubeletOf(client, a.instances, a.metrics, options); err != nil {
		return nil, err
	}
	a.reconciler = &reconciler{
		node: options.NodeName, configurations: a.configurations, properties: a.properties, streams: a.streams,
		publisher: publish.New(client, a.instances, options.NodeName, options.manager(), log),
		reporter:  reporter{client: client, manager: options.manager()},
		sink:      a.kubelet, log: log, queue: queue,
		offered: map[types.NamespacedName][]device.Device{},
	}
	a.metrics.MustRegister(collector{handlers: a.handlers, instances: a.instances})
	return a, nil
}

// close ends what Run does not wait for.
func (a *parts) close() {
	a.reconciler.queue.ShutDown()
	a.streams.Close()
	a.properties.Close()
}

func (a *parts) ready() error {
	for _, synced := range a.synced {
		if !synced() {
			return errors.New("the API server has not been reached yet")
		}
	}
	return nil
}

// ignoreEnd takes being told to end for no error.
func ignoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// sinkOnly is a Sink that needs no goroutine.
type sinkOnly struct{ device.Sink }

func (sinkOnly) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func kubeletOf(client dynamic.Interface, instances *publish.Instances, metrics prometheus.Registerer, options Options) (kubeletSide, error) {
	if options.Sink != nil {
		return sinkOnly{options.Sink}, nil
	}
	return deviceplugin.New(deviceplugin.Options{
		NodeName: options.NodeName, KubeletDir: options.KubeletDirectory, FieldManager: options.manager(),
		Client: client, Instances: instances.Informer(), Log: options.Logger, Metrics: metrics,
	})
}
