package deviceplugin

import (
	"time"
)

// remove deletes an Instance as a user does. The agents create it again.
func (c *cluster) remove(*memoryNode) {
	d := c.devices[c.random.IntN(len(c.devices))]
	c.edited.Store(true)
	h := c.history(d.name)
	h.removed, h.agreed = time.Now(), time.Time{}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if instance := c.api.objects[d.name]; instance != nil {
		c.api.remove(instance)
	}
}
