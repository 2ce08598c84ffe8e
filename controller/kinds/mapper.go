package kinds

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

const (
	// maxAge is the age up to which a discovery counts.
	maxAge = time.Minute
	// Discovery lags behind a CustomResourceDefinition: one that begins up to settling after
	// a change counts up to the age shortAge only, as does one that has failed.
	settling = 30 * time.Second
	shortAge = time.Second
	// timeout limits one discovery.
	timeout = 10 * time.Second
)

// Mapper maps kinds to resources. It is safe for concurrent use.
type Mapper struct {
	discover func(context.Context) *catalog

	mu sync.RWMutex
	// known are the mappings that were found, by the kind as it was asked for: the version
	// may be empty.
	known map[schema.GroupVersionKind]*meta.RESTMapping
	// changed is when a CustomResourceDefinition has last changed.
	changed time.Time

	discovering sync.Mutex // held during a discovery: who needs it waits for its answer
	latest      *catalog
}

var _ meta.RESTMapper = (*Mapper)(nil)

// New returns a Mapper for an API server.
func New(config *rest.Config, transport *http.Client) (*Mapper, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client for discovery: %w", err)
	}
	return newMapper(func(ctx context.Context) *catalog { return download(ctx, client) }), nil
}

func newMapper(discover func(context.Context) *catalog) *Mapper {
	return &Mapper{discover: discover, known: map[schema.GroupVersionKind]*meta.RESTMapping{}}
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
func (m *Mapper) Changed(group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = time.Now()
	maps.DeleteFunc(m.known, func(kind schema.GroupVersionKind, _ *meta.RESTMapping) bool { return kind.Group == group })
}

// RESTMapping implements meta.RESTMapper. The caller must not change the mapping.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := kind.WithVersion(strings.Join(versions, ","))
	m.mu.RLock()
	mapping := m.known[key]
	m.mu.RUnlock()
	if mapping != nil {
		return mapping, nil
	}
	return find(m, kind.Group, func(found *catalog) (*meta.RESTMapping, error) {
		mapping, err := found.RESTMapping(kind, versions...)
		m.mu.Lock()
		defer m.mu.Unlock()
		if err == nil && found.began.Sub(m.changed) >= settling {
			m.known[key] = mapping
		}
		return mapping, err
	})
}

// find answers a question about an API group, if necessary after a discovery.
func find[T any](m *Mapper, group string, ask func(*catalog) (T, error)) (answer T, err error) {
	found := m.catalog()
	if found.err != nil {
		return answer, found.err
	}
	answer, err = ask(found)
	if failed := found.failed[group]; failed != nil && meta.IsNoMatchError(err) {
		err = fmt.Errorf("discover the kinds of API group %q: %w", group, failed)
	}
	return answer, err
}

// catalog returns what the latest discovery has found, or a new one if that does not count
// any more.
func (m *Mapper) catalog() *catalog {
	m.discovering.Lock()
	defer m.discovering.Unlock()
	m.mu.RLock()
	changed := m.changed
	m.mu.RUnlock()
	if known := m.latest; known != nil && known.began.After(changed) {
		lasts := maxAge
		if known.err != nil || known.began.Sub(changed) < settling {
			lasts = shortAge
		}
		if time.Since(known.ended) < lasts {
			return known
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	m.latest = m.discover(ctx)
	m.latest.began, m.latest.ended = began, time.Now()
	return m.latest
}

// KindFor implements meta.RESTMapper.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return find(m, resource.Group, func(c *catalog) (schema.GroupVersionKind, error) { return c.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return find(m, resource.Group, func(c *catalog) ([]schema.GroupVersionKind, error) { return c.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (m *Mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return find(m, resource.Group, func(c *catalog) (schema.GroupVersionResource, error) { return c.ResourceFor(resource) })
}

// ResourcesFor implements meta.RESTMapper.
func (m *Mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return find(m, resource.Group, func(c *catalog) ([]schema.GroupVersionResource, error) { return c.ResourcesFor(resource) })
}

// RESTMappings implements meta.RESTMapper.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return find(m, kind.Group, func(c *catalog) ([]*meta.RESTMapping, error) { return c.RESTMappings(kind, versions...) })
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	return find(m, "", func(c *catalog) (string, error) { return c.ResourceSingularizer(resource) })
}
