package deviceplugin

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// devices holds the published devices, and the Instance that each resource stands
// for. The kubelet knows a resource only by the Instance's name, so the second of
// two Instances with the same name in different namespaces is refused until the
// first is gone.
type devices struct {
	names     map[string]types.NamespacedName // by resource
	published map[types.NamespacedName]device.Device
	lists     map[types.NamespacedName][]types.NamespacedName // by Configuration
	waiting   map[types.NamespacedName]bool                   // refused
}

func newDevices() *devices {
	return &devices{
		names:     map[string]types.NamespacedName{},
		published: map[types.NamespacedName]device.Device{},
		lists:     map[types.NamespacedName][]types.NamespacedName{},
		waiting:   map[types.NamespacedName]bool{},
	}
}

// nameOf returns the Instance that a resource stands for.
func (d *devices) nameOf(resource string) types.NamespacedName { return d.names[resource] }

// get returns the device that a resource stands for.
func (d *devices) get(resource string) (device.Device, bool) {
	found, ok := d.published[d.names[resource]]
	return found, ok
}

// replace replaces the devices of a Configuration. It returns the Instances that
// are no longer among them.
func (d *devices) replace(configuration types.NamespacedName, list []device.Device) (withdrawn []types.NamespacedName) {
	var names []types.NamespacedName
	for _, one := range list {
		d.published[one.Instance] = one
		names = append(names, one.Instance)
	}
	for _, name := range d.lists[configuration] {
		if !slices.Contains(names, name) {
			delete(d.published, name)
			withdrawn = append(withdrawn, name)
		}
	}
	if len(names) == 0 {
		delete(d.lists, configuration)
	} else {
		d.lists[configuration] = names
	}
	return withdrawn
}

// Publish implements [device.Sink].
func (s *Server) Publish(configuration types.NamespacedName, list []device.Device) {
	s.queue.post(func() {
		withdrawn := s.devices.replace(configuration, list)
		for _, d := range list {
			s.offer(d)
		}
		for _, name := range withdrawn {
			if s.devices.nameOf(name.Name) == name {
				s.step(slots.DeviceWithdrawn{Instance: name.Name})
			}
		}
	})
}

// offer passes a published device to the machine and to its service.
func (s *Server) offer(d device.Device) {
	name := d.Instance
	if !s.own(name) {
		return
	}
	if r := s.resources[name.Name]; r != nil {
		r.setDevice(d)
	}
	s.step(slots.DevicePublished{Instance: name.Name, Shared: d.Shared, Capacity: int(d.Capacity), Online: d.Online})
}

// own assigns an Instance the resource of its name, and reports whether it could. An
// Instance that is refused waits until the other one is gone.
func (s *Server) own(name types.NamespacedName) bool {
	owner, found := s.devices.names[name.Name]
	if found && owner != name && s.machine.InUse(name.Name) {
		if !s.devices.waiting[name] {
			s.log.Error("Another Instance with the same name has the resource", "instance", name, "other", owner)
		}
		s.devices.waiting[name] = true
		return false
	}
	delete(s.devices.waiting, name)
	s.devices.names[name.Name] = name
	return true
}

// offerWaiting offers the Instances whose resource has become available.
func (s *Server) offerWaiting() {
	for name := range s.devices.waiting {
		if s.machine.InUse(name.Name) {
			continue
		}
		delete(s.devices.waiting, name)
		if instance := s.options.Instances.Get(name); instance != nil {
			s.recorded(instance)
		}
		if d, ok := s.devices.published[name]; ok {
			s.offer(d)
		}
	}
}

// instanceEvents passes events of the Instances to the loop.
func (s *Server) instanceEvents() instances.Handler {
	return instances.Handler{
		Changed: func(instance *v0.Instance) { s.queue.post(func() { s.recorded(instance) }) },
		Left: func(instance *v0.Instance) {
			s.queue.post(func() { s.lost(instance, slots.InstanceLeft{Instance: instance.Name}) })
		},
		Deleted: func(instance *v0.Instance) {
			s.queue.post(func() {
				s.lost(instance, slots.InstanceDeleted{Instance: instance.Name, Version: claims.Version(instance)})
			})
		},
	}
}

func (s *Server) recorded(instance *v0.Instance) {
	name := instances.NameOf(instance)
	if !s.own(name) {
		return
	}
	record := claims.Record(instance)
	s.step(slots.InstanceRecorded{Instance: name.Name, Record: record})
	for _, owner := range record.Usage {
		if owner.Node == s.options.NodeName {
			s.observeSoon()
			break
		}
	}
}

// lost passes the event of an Instance that the watch no longer shows.
func (s *Server) lost(instance *v0.Instance, event slots.Event) {
	name := instances.NameOf(instance)
	delete(s.devices.waiting, name)
	if s.devices.nameOf(name.Name) == name {
		s.step(event)
		s.forgetName(name.Name)
	}
}

// forgetName removes the entry of a resource that is no longer needed.
func (s *Server) forgetName(resource string) {
	if s.resources[resource] == nil && !s.machine.InUse(resource) {
		delete(s.devices.names, resource)
	}
}
