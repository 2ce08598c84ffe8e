package agent

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

const (
	// missingDelay is how long a handler may be missing before the node reports it. A
	// handler that starts registers within ten seconds.
	missingDelay = 30 * time.Second
	// maxMissing is how many nodes report that they have no handler, at most: the others
	// may have one that fails, and need room in the status.
	maxMissing = v0.MaxDiscoveryFailures / 2
)

// missing decides whether this node reports that it does not have the discovery handler
// of a Configuration. Many nodes need no handler, so a Configuration is reported only if,
// as far as this agent knows, no node has ever found a device for it. It is safe for
// concurrent use.
type missing struct {
	delay time.Duration

	mu       sync.Mutex
	handlers map[types.NamespacedName]missingHandler
}

// missingHandler is a handler that this node does not have.
type missingHandler struct {
	uid     types.UID // of the Configuration
	handler string
	since   time.Time
	// elsewhere means that some node has found devices with it.
	elsewhere bool
}

func newMissing(delay time.Duration) *missing {
	return &missing{delay: delay, handlers: map[types.NamespacedName]missingHandler{}}
}

// observe reports whether to report the handler of a Configuration as missing, and when
// to call observe again; zero for never. served says that this node has it.
func (m *missing) observe(configuration *cachedConfiguration, served bool, now time.Time) (report bool, again time.Time) {
	name, handler := keyOf(configuration), configuration.Spec.DiscoveryHandler.Name
	m.mu.Lock()
	defer m.mu.Unlock()
	if served {
		delete(m.handlers, name)
		return false, time.Time{}
	}
	known, found := m.handlers[name]
	if !found || known.uid != configuration.UID || known.handler != handler {
		known = missingHandler{uid: configuration.UID, handler: handler, since: now}
	}
	known.elsewhere = known.elsewhere || configuration.discovered
	m.handlers[name] = known
	switch due := known.since.Add(m.delay); {
	case known.elsewhere, configuration.otherMissing >= maxMissing && !reportsMissing(configuration):
		return false, time.Time{}
	case now.Before(due):
		return false, due
	}
	return true, time.Time{}
}

// forget drops what is known about a Configuration.
func (m *missing) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.handlers, name)
}

// reportsMissing reports whether the status says that this node has no handler.
func reportsMissing(configuration *cachedConfiguration) bool {
	return slices.ContainsFunc(configuration.Status.DiscoveryFailures, v0.DiscoveryFailure.HandlerMissing)
}
