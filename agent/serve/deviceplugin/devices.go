package deviceplugin

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// deviceSet holds what this node knows about its Instances. The kubelet and the machine
// know an Instance only by its name, so the second of two Instances with the same name
// in different namespaces is refused until the first is gone.
type deviceSet struct {
	known map[string]*knownInstance // by the Instance's name
	// refused are the Instances whose name another one has, with the device if it is published.
	refused map[types.NamespacedName]*device.Device
}

// knownInstance is an Instance that has been published or recorded.
type knownInstance struct {
	name types.NamespacedName
	// configuration is the name of the Configuration, in the same namespace.
	configuration string
	// device is the device as last published, or nil. It is kept until the Instance is
	// forgotten, for the containers that have it.
	device    *device.Device
	published bool
}

func newDevices() *deviceSet {
	return &deviceSet{known: map[string]*knownInstance{}, refused: map[types.NamespacedName]*device.Device{}}
}

// nameOf returns the namespace and name of an Instance.
func (d *deviceSet) nameOf(instance string) types.NamespacedName {
	if k := d.known[instance]; k != nil {
		return k.name
	}
	return types.NamespacedName{Name: instance}
}

// of returns the devices of slots, and whether all of them are known.
func (d *deviceSet) of(refs []slots.Ref) ([]device.Device, bool) {
	list := make([]device.Device, 0, len(refs))
	for _, ref := range refs {
		k := d.known[ref.Instance]
		if k == nil || k.device == nil {
			return nil, false
		}
		list = append(list, *k.device)
	}
	return list, true
}

// Publish implements [device.Sink].
func (s *Server) Publish(configuration types.NamespacedName, list []device.Device) {
	s.queue.post(func() {
		now := make(map[types.NamespacedName]bool, len(list))
		for _, d := range list {
			now[d.Instance] = true
			s.offer(d)
		}
		gone := func(d *device.Device) bool {
			return d != nil && d.Instance.Namespace == configuration.Namespace && d.Configuration == configuration.Name && !now[d.Instance]
		}
		for name, k := range s.devices.known {
			if k.published && gone(k.device) {
				k.published = false
				s.step(slots.DeviceWithdrawn{Instance: name})
			}
		}
		for name, d := range s.devices.refused {
			if gone(d) {
				s.devices.refused[name] = nil
			}
		}
	})
}

// offer passes a published device to the machine, unless that knows it.
func (s *Server) offer(d device.Device) {
	k := s.own(d.Instance)
	switch {
	case k == nil:
		s.devices.refused[d.Instance] = &d
		return
	case k.published && reflect.DeepEqual(*k.device, d):
		return
	}
	k.configuration, k.device, k.published = d.Configuration, &d, true
	s.step(slots.DevicePublished{
		Instance: d.Instance.Name, Configuration: d.Configuration, Shared: d.Shared,
		Capacity: int(min(d.Capacity, v0.MaxSlots)), Online: d.Online,
	})
}

// own returns what is known about an Instance, or nil if another Instance has its
// name. An Instance that is refused waits until the other one is gone.
func (s *Server) own(name types.NamespacedName) *knownInstance {
	k := s.devices.known[name.Name]
	if k != nil && k.name != name && s.machine.InUse(name.Name) {
		if _, refused := s.devices.refused[name]; !refused {
			s.devices.refused[name] = nil
			s.warnOfInstance(name, "", reasonNameTaken, "Instance "+k.name.String()+" has the same name: delete one of them")
		}
		return nil
	}
	delete(s.devices.refused, name)
	if k == nil || k.name != name {
		k = &knownInstance{name: name}
		s.devices.known[name.Name] = k
	}
	return k
}

// offerRefused offers the Instances whose name has become available.
func (s *Server) offerRefused() {
	for name, d := range s.devices.refused {
		if s.machine.InUse(name.Name) {
			continue
		}
		delete(s.devices.refused, name)
		if instance := s.options.Instances.Get(name); instance != nil {
			// What is known of the other Instance is often of a later version.
			s.step(slots.InstanceDeleted{Instance: name.Name, Version: claims.Version(instance)})
			s.recorded(instance)
		}
		if d != nil {
			s.offer(*d)
		}
	}
}

// InstanceEvent passes an event of an Instance to the loop. It is an [instances.Handler].
func (s *Server) InstanceEvent(event instances.Event, instance *v0.Instance) {
	s.queue.post(func() {
		switch event {
		case instances.Changed:
			s.recorded(instance)
		case instances.Left:
			s.lost(instance, slots.InstanceLeft{Instance: instance.Name})
		case instances.Deleted:
			s.lost(instance, slots.InstanceDeleted{Instance: instance.Name, Version: claims.Version(instance)})
		}
	})
}

// recorded passes an Instance to the machine. If somebody else has changed the owner of a slot
// of this node, the Pods are observed: after a start, or after an edit.
func (s *Server) recorded(instance *v0.Instance) {
	if k := s.own(instances.NameOf(instance)); k != nil {
		k.configuration = instance.Spec.ConfigurationName
		before := s.machine.Edits()
		s.step(slots.InstanceRecorded{Instance: instance.Name, Record: claims.Record(instance)})
		if s.machine.Edits() > before {
			s.observeSoon()
		}
	}
}

// lost passes the event of an Instance that the watch no longer shows.
func (s *Server) lost(instance *v0.Instance, event slots.Event) {
	name := instances.NameOf(instance)
	delete(s.devices.refused, name)
	if s.devices.nameOf(name.Name) == name {
		s.step(event)
		s.forget(name.Name)
	}
}

// forget drops what is known about an Instance that is no longer needed.
func (s *Server) forget(instance string) {
	if r := s.resources[instance]; (r == nil || r.resource.Group) && !s.machine.InUse(instance) {
		delete(s.devices.known, instance)
	}
}
