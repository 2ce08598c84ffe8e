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

	mutex   sync.Mutex
	entries map[types.NamespacedName]*Templates
}

// NewCache returns an empty one.
func NewCache(policy confine.Policy) *Cache {
	return &Cache{policy: policy, entries: map[types.NamespacedName]*Templates{}}
}

// Get returns the compiled templates of the Configuration.
func (c *Cache) Get(configuration *v0.Configuration) *Templates {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	c.mutex.Lock()
	entry := c.entries[name]
	c.mutex.Unlock()
	if entry != nil && entry.uid == configuration.UID && entry.generation == configuration.Generation {
		return entry
	}
	entry = Compile(configuration, c.policy) // without the lock: two workers at worst do it twice
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries[name] = entry
	return entry
}

// Len is how many Configurations' templates are held.
func (c *Cache) Len() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.entries)
}

// Forget drops those of a Configuration that has gone.
func (c *Cache) Forget(name types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.entries, name)
}
