package kinds

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

const (
	// maxAge is the age up to which a catalog decides that a kind is unknown.
	maxAge = time.Minute
	// Discovery lags behind a CustomResourceDefinition: for this time after a change,
	// a catalog decides about the kinds of its group up to the age settlingAge only.
	settling    = 30 * time.Second
	settlingAge = time.Second
	// timeout limits one discovery, and retryDelay is the pause after a failed one.
	timeout    = 10 * time.Second
	retryDelay = time.Second
)

// Mapper maps kinds to resources. It is safe for concurrent use.
type Mapper struct {
	discover func(context.Context) (*catalog, error)

	current atomic.Pointer[catalog] // nil until the first discovery

	mu sync.Mutex // held during a discovery: who needs it waits for its answer
	// err is the error of the latest discovery, at failedAt.
	err      error
	failedAt time.Time

	changesMu sync.Mutex
	// changes are the times of recent changes of CustomResourceDefinitions, by API group.
	changes map[string]time.Time
}

var _ meta.RESTMapper = (*Mapper)(nil)

// New returns a Mapper for an API server.
func New(config *rest.Config, transport *http.Client) (*Mapper, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client for discovery: %w", err)
	}
	return newMapper(func(ctx context.Context) (*catalog, error) { return download(ctx, client) }), nil
}

func newMapper(discover func(context.Context) (*catalog, error)) *Mapper {
	return &Mapper{discover: discover, changes: map[string]time.Time{}}
}

// Provide is a MapperProvider for managers.
func Provide(config *rest.Config, transport *http.Client) (meta.RESTMapper, error) {
	return New(config, transport)
}

// Of returns the Mapper of a manager with the MapperProvider [Provide], and a new one
// for another manager.
func Of(mgr cluster.Cluster) (*Mapper, error) {
	if mapper, ok := mgr.GetRESTMapper().(*Mapper); ok {
		return mapper, nil
	}
	return New(mgr.GetConfig(), mgr.GetHTTPClient())
}

// Changed records that a CustomResourceDefinition of an API group was created, changed
// or deleted. What was known about the group does not count any more.
func (m *Mapper) Changed(group string) { m.outdate(group, time.Now()) }

// Listed records that a CustomResourceDefinition of an API group exists for some time,
// perhaps not as long as what is known about the group.
func (m *Mapper) Listed(group string) { m.outdate(group, time.Now().Add(-settling)) }

func (m *Mapper) outdate(group string, at time.Time) {
	m.changesMu.Lock()
	defer m.changesMu.Unlock()
	if at.After(m.changes[group]) {
		m.changes[group] = at
	}
}

// find answers a question about an API group, if necessary after a discovery.
func find[T any](m *Mapper, group string, ask func(meta.RESTMapper) (T, error)) (T, error) {
	var none T
	known, err := m.catalog(func(c *catalog) bool { return m.upToDate(c, group) })
	if err != nil {
		return none, err
	}
	result, err := ask(known.mapper)
	if meta.IsNoMatchError(err) {
		var failure error
		known, failure = m.catalog(func(c *catalog) bool { return m.upToDate(c, group) && time.Since(c.began) < maxAge })
		if failure != nil {
			return none, failure
		}
		result, err = ask(known.mapper)
	}
	if failed := known.failed[group]; failed != nil && meta.IsNoMatchError(err) {
		return none, fmt.Errorf("discover the kinds of API group %q: %w", group, failed)
	}
	return result, err
}

// catalog returns a catalog that suffices, if necessary after a discovery.
func (m *Mapper) catalog(suffices func(*catalog) bool) (*catalog, error) {
	if known := m.current.Load(); known != nil && suffices(known) {
		return known, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.current.Load(); known != nil && suffices(known) { // somebody else has asked meanwhile
		return known, nil
	}
	if err := m.refresh(); err != nil {
		return nil, err
	}
	return m.current.Load(), nil
}

// upToDate reports whether a catalog includes all changes of an API group.
func (m *Mapper) upToDate(c *catalog, group string) bool {
	m.changesMu.Lock()
	defer m.changesMu.Unlock()
	at, found := m.changes[group]
	since := c.began.Sub(at)
	return !found || since >= settling || since > 0 && time.Since(c.began) < settlingAge
}

// refresh performs a discovery, unless one has just failed. The caller holds mu.
func (m *Mapper) refresh() error {
	if m.err != nil && time.Since(m.failedAt) < retryDelay {
		return m.err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	found, err := m.discover(ctx)
	if m.err = err; err != nil {
		m.failedAt = time.Now()
		return err
	}
	m.changesMu.Lock()
	defer m.changesMu.Unlock()
	found.began = began
	found.keep(m.current.Load(), func(group string) bool { _, recently := m.changes[group]; return recently })
	m.current.Store(found)
	maps.DeleteFunc(m.changes, func(_ string, at time.Time) bool { return began.Sub(at) >= settling })
	return nil
}

// KindFor implements meta.RESTMapper.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return find(m, resource.Group, func(known meta.RESTMapper) (schema.GroupVersionKind, error) { return known.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return find(m, resource.Group, func(known meta.RESTMapper) ([]schema.GroupVersionKind, error) { return known.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (m *Mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return find(m, input.Group, func(known meta.RESTMapper) (schema.GroupVersionResource, error) { return known.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (m *Mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return find(m, input.Group, func(known meta.RESTMapper) ([]schema.GroupVersionResource, error) { return known.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return find(m, kind.Group, func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(kind, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return find(m, kind.Group, func(known meta.RESTMapper) ([]*meta.RESTMapping, error) { return known.RESTMappings(kind, versions...) })
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	return find(m, "", func(known meta.RESTMapper) (string, error) { return known.ResourceSingularizer(resource) })
}
