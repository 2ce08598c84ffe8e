package templates

import (
	"bytes"
	"encoding/json"
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
// of all Configurations in use are not too large: then it drops any of them, which are
// compiled again for the next pass.
type Cache struct {
	policy confine.Policy
	max    int

	mu      sync.Mutex
	entries map[types.NamespacedName]cached
	bytes   int
}

// cached is an entry of the Cache.
type cached struct {
	templates *Templates
	bytes     int
}

// NewCache returns an empty Cache.
func NewCache(policy confine.Policy) *Cache {
	return &Cache{policy: policy, max: maxCached, entries: map[types.NamespacedName]cached{}}
}

// Get returns the compiled templates of a Configuration.
func (c *Cache) Get(configuration *v0.Configuration) *Templates {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	c.mu.Lock()
	known := c.entries[name].templates
	c.mu.Unlock()
	if known != nil && known.uid == configuration.UID && known.generation == configuration.Generation {
		return known
	}
	entry := cached{Compile(configuration, c.policy), estimate(configuration)} // without the lock: at worst two workers do it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(name)
	if entry.bytes > c.max {
		return entry.templates
	}
	c.entries[name] = entry
	c.bytes += entry.bytes
	for other := range c.entries {
		if c.bytes > c.max && other != name {
			c.drop(other)
		}
	}
	return entry.templates
}

// drop removes an entry, if there is one. The caller holds the lock.
func (c *Cache) drop(name types.NamespacedName) {
	c.bytes -= c.entries[name].bytes
	delete(c.entries, name)
}

// Forget drops the templates of a Configuration that no longer exists.
func (c *Cache) Forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(name)
}

// What compiled templates take, in bytes, rounded up from measurements.
const (
	bytesPerTemplate   = 2048
	bytesPerToken      = 128 // of JSON
	bytesPerExpression = 256
)

// estimate returns about how many bytes of memory the compiled templates of a
// Configuration take. Legacy fields become at most five small templates.
func estimate(configuration *v0.Configuration) int {
	spec := configuration.Spec
	encoded, _ := json.Marshal(spec) // if it cannot be read, there is nothing to hold
	tokens, decoder := 0, json.NewDecoder(bytes.NewReader(encoded))
	for _, err := decoder.Token(); err == nil; _, err = decoder.Token() {
		tokens++
	}
	templates := len(spec.InstanceBrokerResources) + len(spec.ConfigurationBrokerResources) + 5
	expressions := bytes.Count(encoded, []byte("{{"))
	return templates*bytesPerTemplate + tokens*bytesPerToken + expressions*bytesPerExpression + 2*len(encoded)
}
