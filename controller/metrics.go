package controller

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
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
	watchedDescription = prometheus.NewDesc("akri_controller_watched_objects",
		"Broker resources in the caches, by API group and resource.", []string{"group", "resource"}, nil)
	watchesDescription = prometheus.NewDesc("akri_controller_watches",
		"Watches of kinds by state: synced, starting or failing.", []string{"state"}, nil)
	memoryDescription = prometheus.NewDesc("akri_controller_remembered_entries",
		"Entries kept in memory in addition to the caches, by subject.", []string{"subject"}, nil)
)

// collector reads the metrics that count what exists.
type collector struct {
	cache   client.Reader
	memory  *memory
	clients *apply.Clients
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{instancesDescription, watchedDescription, watchesDescription, memoryDescription} {
		to <- description
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var configurations v0.ConfigurationList
	if err := c.cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err == nil { // else the caches have not synced
		for i := range configurations.Items {
			configuration := &configurations.Items[i]
			status := configuration.Status
			count := func(instances int32, state string) {
				gauge(instancesDescription, int(instances), configuration.Namespace, configuration.Name, state)
			}
			count(status.ReadyInstances, "ready")
			count(status.FailingInstances, "failing")
			count(status.Instances-status.ReadyInstances-status.FailingInstances, "waiting")
		}
	}
	states := map[string]int{"synced": 0, "starting": 0, "failing": 0}
	for _, watched := range c.memory.informers.Report() {
		switch {
		case watched.State.Synced:
			states["synced"]++
		case watched.State.Err != nil:
			states["failing"]++
		default:
			states["starting"]++
		}
		gauge(watchedDescription, watched.Objects, watched.Resource.Group, watched.Resource.Resource)
	}
	for state, count := range states {
		gauge(watchesDescription, count, state)
	}
	gauge(memoryDescription, c.memory.templates.Len(), "compiled_templates")
	podBackoffs, repairs := c.memory.converger.Remembered()
	gauge(memoryDescription, podBackoffs, "ended_pods")
	gauge(memoryDescription, repairs, "repaired_objects")
	gauge(memoryDescription, c.clients.Len(), "service_accounts")
}

func (m *metrics) register(registerer prometheus.Registerer, collector collector) error {
	if registerer == nil {
		return nil
	}
	return errors.Join(registerer.Register(m.actions), registerer.Register(m.failures), registerer.Register(collector))
}
