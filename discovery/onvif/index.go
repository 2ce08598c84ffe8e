package onvif

import "slices"

// insert adds a camera to those that are remembered.
func (t *tracker) insert(c *camera) {
	t.cameras[c.key] = c
	t.byHost[c.host] = append(t.byHost[c.host], c)
	t.byUUID[c.uuid] = append(t.byUUID[c.uuid], c)
}

func (t *tracker) delete(c *camera) {
	delete(t.cameras, c.key)
	deleteFrom(t.byHost, c.host, c)
	deleteFrom(t.byUUID, c.uuid, c)
}

func deleteFrom(groups map[string][]*camera, name string, c *camera) {
	groups[name] = slices.DeleteFunc(groups[name], func(other *camera) bool { return other == c })
	if len(groups[name]) == 0 {
		delete(groups, name)
	}
}
