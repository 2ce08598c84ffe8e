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
	// changed is when a CustomResourceDefinition has last changed, and groups has the same for
	// each API group, as long as that is recent.
	changed time.Time
	groups  map[string]time.Time

	discovering sync.Mutex // held during a discovery: who needs it waits for its answer
	latest      *catalog
}

// New returns a Mapper for an API server.
func New(config *rest.Config, transport *http.Client) (*Mapper, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client for discovery: %w", err)
	}
	return newMapper(func(ctx context.Context) *catalog { return download(ctx, client) }), nil
}

func newMapper(discover func(context.Context) *catalog) *Mapper {
	return &Mapper{discover: discover, known: map[schema.GroupVersionKind]*meta.RESTMapping{}, groups: map[string]time.Time{}}
}

// Changed records that a CustomResourceDefinition of an API group was created, changed
// or deleted. What was known about the group does not count any more.
func (m *Mapper) Changed(group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = time.Now()
	maps.DeleteFunc(m.groups, func(_ string, at time.Time) bool { return m.changed.Sub(at) > 2*settling })
	m.groups[group] = m.changed
	maps.DeleteFunc(m.known, func(kind schema.GroupVersionKind, _ *meta.RESTMapping) bool { return kind.Group == group })
}

// RESTMapping returns the mapping of a kind, in one of the versions or, if none is given, in the
// preferred one. The caller must not change it. The error is a NoMatch error if the API server
// does not serve the kind.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := kind.WithVersion(strings.Join(versions, ","))
	m.mu.RLock()
	mapping := m.known[key]
	m.mu.RUnlock()
	if mapping != nil {
		return mapping, nil
	}
	found := m.catalog()
	if found.err != nil {
		return nil, found.err
	}
	mapping, err := found.mapper.RESTMapping(kind, versions...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && found.began.Sub(m.groups[kind.Group]) >= settling {
		m.known[key] = mapping
	}
	return mapping, found.explain(kind.Group, err)
}

// KindsFor returns the kinds of a resource, whose group and version may be empty.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	found := m.catalog()
	if found.err != nil {
		return nil, found.err
	}
	kinds, err := found.mapper.KindsFor(resource)
	return kinds, found.explain(resource.Group, err)
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
