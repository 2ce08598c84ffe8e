package controller

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/internal/version"
)

// scrapeTimeout bounds how long reading the caches may delay a scrape.
const scrapeTimeout = time.Second

// metrics counts actions and failures. docs/metrics.md lists all metrics.
type metrics struct {
	actions  *prometheus.CounterVec
	failures *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akri_controller_actions_total", Help: "Actions on broker resources, by action.",
		}, []string{"action"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akri_controller_failures_total", Help: "Failed attempts, by condition reason.",
		}, []string{"reason"}),
	}
}

// observer counts what the converger does, and emits Events for it.
type observer struct {
	*metrics
	events eventRecorder
}

func (o observer) Did(action plan.Action) { o.actions.WithLabelValues(action.String()).Inc() }

func (o observer) Failed(reason string) { o.failures.WithLabelValues(reason).Inc() }

func (o observer) Replaced(parent ownership.Parent, pod inventory.Ref, why string) {
	o.events.podReplaced(parent, pod, why)
}

var (
	instancesDescription = prometheus.NewDesc("akri_controller_instances",
		"Instances by Configuration and state: ready, failing or waiting.", []string{"namespace", "configuration", "state"}, nil)
	conditionsDescription = prometheus.NewDesc("akri_controller_conditions",
		"Conditions of Configurations, with their reason: 1 if True, 0 if not.",
		[]string{"namespace", "configuration", "condition", "reason"}, nil)
	configurationsDescription = prometheus.NewDesc("akri_controller_configurations",
		"Configurations, by the discovery handler that they use.", []string{"discovery_handler_name"}, nil)
	slotsDescription = prometheus.NewDesc("akri_controller_slots",
		"Slots of the Instances of a Configuration, by state: free or used.", []string{"namespace", "configuration", "state"}, nil)
	watchedDescription = prometheus.NewDesc("akri_controller_watched_objects",
		"Broker resources in the caches, by API group, version and resource.", []string{"group", "version", "resource"}, nil)
	watchesDescription = prometheus.NewDesc("akri_controller_watches",
		"Watches of kinds by state: synced, starting or failing.", []string{"state"}, nil)
)

// collector reads the metrics that count what exists.
type collector struct {
	cache     client.Reader
	informers *informers.Informers
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		configurationsDescription, instancesDescription, conditionsDescription, slotsDescription,
		watchedDescription, watchesDescription,
	} {
		to <- description
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), labels...)
	}
	c.collectConfigurations(gauge)
	states := map[string]int{"synced": 0, "starting": 0, "failing": 0}
	for _, watched := range c.informers.Report() {
		switch {
		case watched.State.Synced:
			states["synced"]++
		case watched.State.Err != nil:
			states["failing"]++
		default:
			states["starting"]++
		}
		gauge(watchedDescription, watched.Objects, watched.Resource.Group, watched.Resource.Version, watched.Resource.Resource)
	}
	for state, count := range states {
		gauge(watchesDescription, count, state)
	}
}

// collectConfigurations reads the metrics of Configurations and their Instances. There
// are none until the caches have synced.
func (c collector) collectConfigurations(gauge func(description *prometheus.Desc, value int, labels ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var configurations v0.ConfigurationList
	var instances v0.InstanceList
	if c.cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy) != nil ||
		c.cache.List(ctx, &instances, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	type slots struct{ free, used int }
	counts := map[types.NamespacedName]slots{}
	for i := range instances.Items {
		instance := &instances.Items[i]
		count, free := counts[groupOf(instance)], int(v0.FreeSlots(instance))
		counts[groupOf(instance)] = slots{free: count.free + free, used: count.used + int(instance.Spec.Capacity) - free}
	}
	handlers := map[string]int{}
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		namespace, name, status := configuration.Namespace, configuration.Name, configuration.Status
		handlers[configuration.Spec.DiscoveryHandler.Name]++
		gauge(instancesDescription, int(status.ReadyInstances), namespace, name, "ready")
		gauge(instancesDescription, int(status.FailingInstances), namespace, name, "failing")
		gauge(instancesDescription, int(status.Instances-status.ReadyInstances-status.FailingInstances), namespace, name, "waiting")
		count := counts[types.NamespacedName{Namespace: namespace, Name: name}]
		gauge(slotsDescription, count.free, namespace, name, "free")
		gauge(slotsDescription, count.used, namespace, name, "used")
		for _, condition := range status.Conditions {
			value := 0
			if condition.Status == metav1.ConditionTrue {
				value = 1
			}
			gauge(conditionsDescription, value, namespace, name, condition.Type, condition.Reason)
		}
	}
	for handler, count := range handlers {
		gauge(configurationsDescription, count, handler)
	}
}

func (m *metrics) register(registerer prometheus.Registerer, c collector) error {
	if registerer == nil {
		return nil
	}
	return errors.Join(registerer.Register(m.actions), registerer.Register(m.failures), registerer.Register(c),
		registerer.Register(version.NewCollector("controller")))
}
