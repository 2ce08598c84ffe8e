package templates

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
)

// Cache compiles each generation of a Configuration once. It holds one
// entry for each Configuration that exists.
type Cache struct {
	policy confine.Policy

	mu      sync.Mutex
	entries map[types.NamespacedName]*Templates
}

// NewCache returns an empty Cache.
func NewCache(policy confine.Policy) *Cache {
	return &Cache{policy: policy, entries: map[types.NamespacedName]*Templates{}}
}

// Get returns the compiled templates of a Configuration.
func (c *Cache) Get(configuration *v0.Configuration) *Templates {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	c.mu.Lock()
	entry := c.entries[name]
	c.mu.Unlock()
	if entry != nil && entry.uid == configuration.UID && entry.generation == configuration.Generation {
		return entry
	}
	entry = Compile(configuration, c.policy) // without the lock: at worst two workers do it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[name] = entry
	return entry
}

// Len returns how many Configurations' templates are held.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// Forget drops the templates of a Configuration that no longer exists.
func (c *Cache) Forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
}
