package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// memory is the state about parents that is kept besides the caches. It belongs to a
// UID: a parent that is created again under the same name starts without state.
type memory struct {
	instances      *statusCache[v0.InstanceStatus]
	configurations *statusCache[v0.ConfigurationStatus]
	templates      *templates.Cache
	converger      *converge.Converger
	informers      *informers.Informers
	gate           *rollout.Gate
	delays         *groupDelays

	mu   sync.Mutex
	uids map[ownership.Parent]types.UID // by the parent without its UID
}

// see records that a parent exists. If an earlier parent had its name, that one is
// forgotten.
func (m *memory) see(parent ownership.Parent) {
	m.mu.Lock()
	uid, found := m.uids[parent.ByName()]
	m.uids[parent.ByName()] = parent.UID
	m.mu.Unlock()
	if found && uid != parent.UID {
		m.drop(parent.ByName(), uid)
	}
}

// forget drops what is remembered about a parent that no longer exists, given by
// its name.
func (m *memory) forget(parent ownership.Parent) {
	m.mu.Lock()
	uid := m.uids[parent.ByName()]
	delete(m.uids, parent.ByName())
	m.mu.Unlock()
	m.drop(parent, uid)
}

func (m *memory) drop(parent ownership.Parent, uid types.UID) {
	m.converger.Forget(uid)
	if parent.Level == templating.InstanceLevel {
		m.instances.forget(uid)
		m.gate.Gone(parent.NamespacedName)
		return
	}
	m.configurations.forget(uid)
	m.templates.Forget(parent.NamespacedName)
	m.gate.Forget(parent.NamespacedName)
	m.delays.forget(parent.NamespacedName)
	m.informers.Use(parent.NamespacedName, nil)
}
