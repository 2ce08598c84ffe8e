package observer

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	monitor "akri.sh/akri/agent/health"
)

// failingAfter is how long the kubelet's list or the node's Pods must have been
// unreadable before the agent warns: a restart of the kubelet takes some seconds.
const failingAfter = 30 * time.Second

// The values of the label "state".
const (
	synced  = "synced"
	syncing = "syncing"
	failing = "failing"
)

var stateDescription = prometheus.NewDesc("akri_agent_observer",
	"How the agent observes which slots are in use, 1 for the current state: synced, syncing or failing.", []string{"state"}, nil)

// Describe implements [prometheus.Collector].
func (o *Observer) Describe(to chan<- *prometheus.Desc) { to <- stateDescription }

// Collect implements [prometheus.Collector].
func (o *Observer) Collect(to chan<- prometheus.Metric) {
	current := o.health.state(o.pods.informer.HasSynced())
	for _, state := range []string{synced, syncing, failing} {
		value := map[bool]float64{true: 1}[state == current]
		to <- prometheus.MustNewConstMetric(stateDescription, prometheus.GaugeValue, value, state)
	}
}

// health warns, once per outage, if slots cannot be freed.
type health struct {
	log *slog.Logger

	mu         sync.Mutex
	list, pods outage
	// loop is stuck while the kubelet does not show which slots are in use: the agent is
	// restarted if that lasts. It would not repair the API server.
	loop *monitor.Loop
}

// outage is a series of failures.
type outage struct {
	since  time.Time // zero if the last attempt succeeded
	warned bool
}

// readList records an attempt to read the kubelet's podresources list.
func (h *health) readList(err error) {
	began := h.record(&h.list, err,
		"Cannot read the kubelet's podresources list; slots of Pods that have terminated stay taken until it can be read",
		"check that the kubelet runs, and that the agent may use pod-resources/kubelet.sock in the kubelet's directory",
		"The kubelet's podresources list can be read again")
	switch {
	case err == nil:
		h.loop.Rest()
	case began:
		h.loop.Beat()
	}
}

// readPods records an attempt to read the node's Pods from the API server.
func (h *health) readPods(err error) {
	h.record(&h.pods, err, "Cannot read the node's Pods; slots of Pods that have terminated stay taken until they can be read",
		"check the connection to the API server, and that the agent may list and watch pods",
		"The node's Pods can be read again")
}

// record records an attempt, and reports whether an outage has begun with it.
func (h *health) record(o *outage, err error, failed, remedy, recovered string) (began bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		if o.warned {
			h.log.Info(recovered)
		}
		*o = outage{}
	case o.since.IsZero():
		o.since, began = time.Now(), true
	case time.Since(o.since) >= failingAfter && !o.warned:
		o.warned = true
		h.log.Warn(failed, "err", err, "remedy", remedy)
	}
	return began
}

// state returns the value of the metric. known means that all Pods of the node are known.
func (h *health) state(known bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.list.warned || h.pods.warned:
		return failing
	case !known:
		return syncing
	}
	return synced
}
