package deviceplugin

import (
	"maps"
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
	known     map[string]*knownInstance // by the Instance's name
	published map[types.NamespacedName]map[types.NamespacedName]device.Device
	waiting   map[types.NamespacedName]bool // refused Instances
}

// knownInstance is an Instance that has been published or recorded.
type knownInstance struct {
	name types.NamespacedName
	// configuration is the name of the Configuration, in the same namespace.
	configuration string
	// device is the device as last published. It is kept until the Instance is
	// forgotten, for the containers that have it.
	device   device.Device
	reported bool
	// own are the slots that the record assigns to this node.
	own map[int]v0.Owner
}

func newDevices() *deviceSet {
	return &deviceSet{
		known:     map[string]*knownInstance{},
		published: map[types.NamespacedName]map[types.NamespacedName]device.Device{},
		waiting:   map[types.NamespacedName]bool{},
	}
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
		if k == nil || !k.reported {
			return nil, false
		}
		list = append(list, k.device)
	}
	return list, true
}

// replace replaces the devices of a Configuration. It returns those that are new or
// have changed, and the Instances that are no longer among them.
func (d *deviceSet) replace(
	configuration types.NamespacedName, list []device.Device,
) (changed []device.Device, gone []types.NamespacedName) {
	before, now := d.published[configuration], make(map[types.NamespacedName]device.Device, len(list))
	for _, one := range list {
		now[one.Instance] = one
		if old, found := before[one.Instance]; !found || !reflect.DeepEqual(old, one) {
			changed = append(changed, one)
		}
	}
	for name := range before {
		if _, found := now[name]; !found {
			gone = append(gone, name)
		}
	}
	if len(now) == 0 {
		delete(d.published, configuration)
	} else {
		d.published[configuration] = now
	}
	return changed, gone
}

// get returns the published device of an Instance.
func (d *deviceSet) get(name types.NamespacedName) (device.Device, bool) {
	for _, list := range d.published {
		if one, found := list[name]; found {
			return one, true
		}
	}
	return device.Device{}, false
}

// Publish implements [device.Sink].
func (s *Server) Publish(configuration types.NamespacedName, list []device.Device) {
	s.queue.post(func() {
		changed, gone := s.devices.replace(configuration, list)
		for _, d := range changed {
			s.offer(d)
		}
		for _, name := range gone {
			if s.devices.nameOf(name.Name) == name {
				s.step(slots.DeviceWithdrawn{Instance: name.Name})
			}
		}
	})
}

// offer passes a published device to the machine.
func (s *Server) offer(d device.Device) {
	k := s.own(d.Instance)
	if k == nil {
		return
	}
	k.configuration, k.device, k.reported = d.Configuration, d, true
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
		if !s.devices.waiting[name] {
			s.devices.waiting[name] = true
			s.warnOfInstance(name, "", reasonNameTaken, "Instance "+k.name.String()+" has the same name: delete one of them")
		}
		return nil
	}
	delete(s.devices.waiting, name)
	if k == nil || k.name != name {
		k = &knownInstance{name: name}
		s.devices.known[name.Name] = k
	}
	return k
}

// offerWaiting offers the Instances whose name has become available.
func (s *Server) offerWaiting() {
	for name := range s.devices.waiting {
		if s.machine.InUse(name.Name) {
			continue
		}
		delete(s.devices.waiting, name)
		if instance := s.options.Instances.Get(name); instance != nil {
			// What is known of the other Instance is often of a later version.
			s.step(slots.InstanceDeleted{Instance: name.Name, Version: claims.Version(instance)})
			s.recorded(instance)
		}
		if d, found := s.devices.get(name); found {
			s.offer(d)
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

// recorded passes an Instance to the machine. Slots that this node has not written
// itself are a reason to observe the pods: after a start, or after an edit.
func (s *Server) recorded(instance *v0.Instance) {
	if k := s.own(instances.NameOf(instance)); k != nil {
		k.configuration = instance.Spec.ConfigurationName
		record := claims.Record(instance)
		s.step(slots.InstanceRecorded{Instance: instance.Name, Record: record})
		if s.remember(k, record) {
			s.observeSoon()
		}
	}
}

// remember records which slots this node owns. It reports whether they have changed.
func (s *Server) remember(k *knownInstance, record slots.Record) (changed bool) {
	own := maps.Clone(record.Usage)
	maps.DeleteFunc(own, func(_ int, owner v0.Owner) bool { return owner.Node != s.options.NodeName })
	if maps.Equal(own, k.own) {
		return false
	}
	k.own = own
	return true
}

// lost passes the event of an Instance that the watch no longer shows.
func (s *Server) lost(instance *v0.Instance, event slots.Event) {
	name := instances.NameOf(instance)
	delete(s.devices.waiting, name)
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
