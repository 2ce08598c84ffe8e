package claims

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// MemoryStore is a Store without a watch.
type MemoryStore struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]*v0.Instance
}

func (m *MemoryStore) Get(name types.NamespacedName) *v0.Instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[name]
}

func (m *MemoryStore) Keep(instance *v0.Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[types.NamespacedName]*v0.Instance{}
	}
	name := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
	if kept := m.kept[name]; kept == nil || Version(instance) >= Version(kept) {
		m.kept[name] = instance
	}
}
