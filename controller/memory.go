package controller

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// parentMemory is the state about parents that is kept besides the caches. It belongs to a
// UID: a parent that is created again under the same name starts without state.
type parentMemory struct {
	instances      *statusCache[v0.InstanceStatus]
	configurations *statusCache[v0.ConfigurationStatus]
	retries        *retries
	templates      *templates.Cache
	converger      *converge.Converger
	informers      *informers.Informers
	gate           *rollout.Gate
	delays         *groupDelays
	kinds          *kindsInUse
	departures     departures
	queues         *parentQueues

	mu   sync.Mutex
	seen map[ownership.Parent]sighting // by the parent without its UID
}

// sighting is what is remembered about a parent in case it is gone in the next pass.
type sighting struct {
	uid types.UID
	// configuration is the UID of the Configuration that it belongs to or is.
	configuration types.UID
	// generation of the Configuration is the one that the conditions of an Instance are
	// about; 0 if that is not known.
	generation int64
	// account is the ServiceAccount that acts for it.
	account types.NamespacedName
	// orphans reports that it is being deleted without its objects.
	orphans bool
}

// observe records that a parent exists, and its Configuration, which may be nil. If an
// earlier parent had its name, that one is forgotten, and its objects are deleted;
// replaced reports that there were some.
func (m *parentMemory) observe(ctx context.Context, parent ownership.Parent, configuration *v0.Configuration) (replaced bool) {
	now := sighting{uid: parent.UID}
	m.mu.Lock()
	former, found := m.seen[parent.ByName()]
	if former.uid == now.uid {
		now.orphans, now.generation = former.orphans, former.generation
	}
	if configuration != nil {
		now.configuration, now.account = configuration.UID, account(configuration)
	} else {
		now.configuration, now.account = former.configuration, former.account
	}
	m.seen[parent.ByName()] = now
	m.mu.Unlock()
	return found && former.uid != parent.UID && m.discard(ctx, parent.ByName(), former) > 0
}

// seeDeletion records whether a parent is being deleted without its objects, as its
// finalizers say. Garbage collection takes the owner reference off the objects that it
// knows of, and then removes that finalizer, perhaps before the next pass.
func (m *parentMemory) seeDeletion(parent ownership.Parent, finalizers []string) {
	if !slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, found := m.seen[parent.ByName()]
	if found && last.uid != parent.UID {
		return // nothing has been created for this one yet
	}
	last.uid, last.orphans = parent.UID, true
	m.seen[parent.ByName()] = last
}

// orphans reports whether a parent is being deleted without its objects.
func (m *parentMemory) orphans(parent ownership.Parent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.seen[parent.ByName()]
	return last.orphans && last.uid == parent.UID
}

// forget drops what is remembered about a parent that no longer exists, given by
// its name, and deletes its objects.
func (m *parentMemory) forget(ctx context.Context, parent ownership.Parent) {
	m.mu.Lock()
	former := m.seen[parent.ByName()]
	delete(m.seen, parent.ByName())
	m.mu.Unlock()
	m.discard(ctx, parent, former)
}

// discard forgets a parent and returns how many of its objects it has deleted.
func (m *parentMemory) discard(ctx context.Context, parent ownership.Parent, former sighting) int {
	m.converger.Forget(former.uid)
	m.informers.Await(parent, nil)
	m.retries.forget(former.uid)
	parent.UID = former.uid
	deleted := 0
	if !former.orphans {
		deleted = m.converger.Collect(ctx, parent, former.account)
	}
	if parent.Level == templating.InstanceLevel {
		m.instances.forget(former.uid)
		m.departures.forget(former.uid)
		m.gate.RemoveInstance(former.configuration, parent.Name)
		return deleted
	}
	m.configurations.forget(former.uid)
	m.templates.Forget(parent.NamespacedName)
	m.gate.Forget(former.uid)
	m.delays.forget(parent.NamespacedName)
	m.informers.SetResources(parent.NamespacedName, nil)
	return deleted
}
