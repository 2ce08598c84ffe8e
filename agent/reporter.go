package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
)

const (
	// reportSpread spreads the reports of many agents that fail for one reason, such as
	// a missing Secret. Most of them then see that the status is full, and write nothing.
	// It doubles with each conflict, up to maxReportSpread.
	reportSpread    = time.Second
	maxReportSpread = time.Minute
	// fullDelay is how long an agent waits after the API server found the status full,
	// at least; it may wait twice as long.
	fullDelay = time.Minute
)

var failuresDescription = prometheus.NewDesc("akri_discovery_failures",
	"Failures of discovery on this node, by Configuration, and whether the status has room for them.",
	[]string{"namespace", "configuration", "reported"}, nil)

// reporter writes a node's failures to the status of Configurations. It is safe for
// concurrent use with different Configurations.
type reporter struct {
	client  dynamic.Interface
	manager string
	log     *slog.Logger

	mu      sync.Mutex
	reports map[types.NamespacedName]knownReport
}

// newReporter returns a reporter that writes as a field manager.
func newReporter(client dynamic.Interface, manager string, log *slog.Logger) *reporter {
	return &reporter{client: client, manager: manager, log: log, reports: map[types.NamespacedName]knownReport{}}
}

// knownReport is what the reporter knows about one Configuration.
type knownReport struct {
	// failures is the number of failures on this node, and unreported is how many of
	// them the status has no room for.
	failures, unreported int
	// due is when the next write may be made; zero if none is needed.
	due time.Time
	// conflicts is the number of writes since the last success that others came before.
	conflicts int
}

// report applies the failures unless the status already shows them, or has no room. It
// returns when to call it again, if a write must wait.
func (r *reporter) report(
	ctx context.Context, configuration *cachedConfiguration, wanted []v0.DiscoveryFailure,
) (again time.Time, err error) {
	name := keyOf(configuration)
	have := slices.SortedFunc(slices.Values(configuration.Status.DiscoveryFailures), func(a, b v0.DiscoveryFailure) int {
		return cmp.Compare(a.Handler, b.Handler)
	})
	fitting := wanted[:min(len(wanted), max(v0.MaxDiscoveryFailures-configuration.otherFailures, 0))]
	known := r.known(name)
	unreported := len(wanted) - len(fitting)
	if unreported > 0 && known.unreported == 0 {
		r.log.Warn("The status of the Configuration has no room for all failures of this node",
			"configuration", name, "unreported", unreported, "first", wanted[len(fitting)].Message)
	}
	known.failures, known.unreported = len(wanted), unreported
	defer func() { r.keep(name, known) }()
	switch {
	case slices.Equal(have, fitting):
		known.due, known.conflicts = time.Time{}, 0
		return time.Time{}, nil
	case known.due.IsZero():
		known.due = time.Now().Add(rand.N(reportSpread))
	}
	if time.Now().Before(known.due) {
		return known.due, nil
	}
	switch err := r.apply(ctx, &configuration.Configuration, fitting); {
	case apierrors.IsInvalid(err): // full
		known.due = time.Now().Add(fullDelay + rand.N(fullDelay))
	case apierrors.IsConflict(err):
		known.due = time.Now().Add(rand.N(backoff.Delay(reportSpread, maxReportSpread, known.conflicts)))
		known.conflicts++
	case err != nil && !apierrors.IsNotFound(err):
		return time.Time{}, fmt.Errorf("write the status of Configuration %s: %w", name, err)
	default:
		known.due, known.conflicts = time.Time{}, 0
	}
	return known.due, nil
}

// apply writes the node's entries. Without entries, the node's field manager leaves the
// object, too.
func (r *reporter) apply(ctx context.Context, configuration *v0.Configuration, wanted []v0.DiscoveryFailure) error {
	name := keyOf(configuration)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": v0.ConfigurationKind.Kind,
		"metadata": map[string]any{"namespace": name.Namespace, "name": name.Name, "uid": string(configuration.UID)},
	}}
	// Without a version, the API server itself retries, and a hundred requests at a time
	// keep it busy for minutes.
	object.SetResourceVersion(configuration.ResourceVersion)
	if len(wanted) > 0 {
		entries := make([]any, 0, len(wanted))
		for _, failure := range wanted {
			entries = append(entries, map[string]any{"node": failure.Node, "handler": failure.Handler, "message": failure.Message})
		}
		object.Object["status"] = map[string]any{"discoveryFailures": entries}
	}
	_, err := r.client.Resource(v0.ConfigurationResource).Namespace(name.Namespace).
		ApplyStatus(ctx, name.Name, object, metav1.ApplyOptions{FieldManager: r.manager, Force: true})
	return err
}

// forget drops what is known about a Configuration.
func (r *reporter) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reports, name)
}

func (r *reporter) known(name types.NamespacedName) knownReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reports[name]
}

// keep stores what is known about a Configuration, if that is anything.
func (r *reporter) keep(name types.NamespacedName, known knownReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports[name] = known
	if known == (knownReport{}) {
		delete(r.reports, name)
	}
}

// Describe implements [prometheus.Collector].
func (r *reporter) Describe(to chan<- *prometheus.Desc) { to <- failuresDescription }

// Collect implements [prometheus.Collector].
func (r *reporter) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, known := range r.reports {
		for reported, count := range map[string]int{"true": known.failures - known.unreported, "false": known.unreported} {
			to <- prometheus.MustNewConstMetric(failuresDescription, prometheus.GaugeValue, float64(count), name.Namespace, name.Name, reported)
		}
	}
}
