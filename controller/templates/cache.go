package templates

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
)

// maxCached bounds the estimated memory, in bytes, of all cached templates. Large
// Configurations take up to ten times their size in JSON, and anyone who may create
// Configurations may create many.
const maxCached = 32 << 20

// Cache compiles each generation of a Configuration once, as long as the templates
// of all Configurations in use are not too large: then it drops those that were not
// used for the longest time, which are compiled again for the next pass.
type Cache struct {
	policy confine.Policy
	max    int

	mu      sync.Mutex
	entries map[types.NamespacedName]*list.Element // of *cached
	recent  *list.List                             // the most recently used first
	bytes   int
}

// cached is an entry of the Cache.
type cached struct {
	name      types.NamespacedName
	templates *Templates
	bytes     int
}

// NewCache returns an empty Cache.
func NewCache(policy confine.Policy) *Cache {
	return &Cache{policy: policy, max: maxCached, entries: map[types.NamespacedName]*list.Element{}, recent: list.New()}
}

// Get returns the compiled templates of a Configuration.
func (c *Cache) Get(configuration *v0.Configuration) *Templates {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	if known := c.find(name); known != nil && known.uid == configuration.UID && known.generation == configuration.Generation {
		return known
	}
	compiled := Compile(configuration, c.policy) // without the lock: at worst two workers do it
	c.add(&cached{name: name, templates: compiled, bytes: estimate(configuration)})
	return compiled
}

// find returns the templates of a Configuration's last known generation, or nil.
func (c *Cache) find(name types.NamespacedName) *Templates {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.entries[name]
	if !found {
		return nil
	}
	c.recent.MoveToFront(element)
	return element.Value.(*cached).templates
}

// add adds an entry, and drops those that there is no room for.
func (c *Cache) add(entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[entry.name])
	if entry.bytes > c.max {
		return
	}
	c.entries[entry.name] = c.recent.PushFront(entry)
	c.bytes += entry.bytes
	for c.bytes > c.max {
		c.drop(c.recent.Back())
	}
}

// drop removes an entry, if there is one. The caller holds the lock.
func (c *Cache) drop(element *list.Element) {
	if element == nil {
		return
	}
	entry := c.recent.Remove(element).(*cached)
	c.bytes -= entry.bytes
	delete(c.entries, entry.name)
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
	c.drop(c.entries[name])
}
