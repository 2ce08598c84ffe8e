package onvif

import "slices"

// cameraIndex has cameras by key, by host and by UUID.
type cameraIndex struct {
	cameras        map[key]*camera
	byHost, byUUID map[string][]*camera
}

func newCameraIndex() cameraIndex {
	return cameraIndex{cameras: map[key]*camera{}, byHost: map[string][]*camera{}, byUUID: map[string][]*camera{}}
}

func (i cameraIndex) insert(c *camera) {
	i.cameras[c.key] = c
	i.byHost[c.host] = append(i.byHost[c.host], c)
	i.byUUID[c.uuid] = append(i.byUUID[c.uuid], c)
}

func (i cameraIndex) delete(c *camera) {
	delete(i.cameras, c.key)
	deleteFrom(i.byHost, c.host, c)
	deleteFrom(i.byUUID, c.uuid, c)
}

func deleteFrom(groups map[string][]*camera, name string, c *camera) {
	group := groups[name]
	if at := slices.Index(group, c); at >= 0 {
		group = slices.Delete(group, at, at+1)
	}
	if groups[name] = group; len(group) == 0 {
		delete(groups, name)
	}
}
