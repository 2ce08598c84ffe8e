package deviceplugin

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Publish implements [device.Sink].
func (n *Node) Publish(configuration types.NamespacedName, devices []device.Device) {
	n.queue.post(func() {
		withdrawn := n.names.publish(configuration, devices)
		for _, d := range devices {
			n.offer(d)
		}
		for _, name := range withdrawn {
			if n.names.of(name.Name) == name {
				n.step(slots.DeviceWithdrawn{Instance: name.Name})
				n.dropName(name)
			}
		}
	})
}

// offer makes a device known to the machine and to its service.
func (n *Node) offer(d device.Device) {
	name := d.Instance
	has, former := n.names.take(name)
	if !has {
		n.log.Error("two Instances of one name: the kubelet knows the resource of the other one", "instance", name, "other", former)
		return
	}
	if former != name {
		n.step(slots.InstanceGone{Instance: name.Name})
	}
	if s := n.services[name.Name]; s != nil {
		s.setDevice(d)
	}
	n.step(slots.DevicePublished{Instance: name.Name, Shared: d.Shared, Capacity: int(d.Capacity), Online: d.Online})
	if record := n.names.records[name]; record != nil && former != name {
		n.step(slots.InstanceRecorded{Instance: name.Name, Record: claims.Record(record)})
	}
}

// dropName lets another Instance have the resource if nothing is left of one.
func (n *Node) dropName(name types.NamespacedName) {
	next, waits := n.names.drop(name)
	if !waits {
		return
	}
	n.offer(n.names.devices[next])
	if record := n.names.records[next]; record != nil {
		n.step(slots.InstanceRecorded{Instance: next.Name, Record: claims.Record(record)})
	}
}

// seen takes what the watch of Instances brings.
func (n *Node) seen(object any, gone bool) {
	if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = last.Obj
	}
	instance, ok := object.(*v0.Instance)
	if !ok {
		n.log.Error("the watch of Instances brings something else", "object", object)
		return
	}
	n.queue.post(func() {
		if gone {
			n.gone(instance)
		} else {
			n.recorded(instance)
		}
	})
}

func (n *Node) recorded(instance *v0.Instance) {
	name := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
	n.names.records[name] = instance
	n.executor.Observe(instance)
	if has, _ := n.names.take(name); !has {
		return
	}
	record := claims.Record(instance)
	n.step(slots.InstanceRecorded{Instance: name.Name, Record: record})
	for _, owner := range record.Usage {
		if owner.Node == n.options.NodeName {
			n.look()
			break
		}
	}
}

func (n *Node) gone(instance *v0.Instance) {
	name := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
	delete(n.names.records, name)
	n.executor.Forget(name)
	if n.names.of(name.Name) != name {
		return
	}
	n.step(slots.InstanceGone{Instance: name.Name, Version: claims.Version(instance)})
	n.dropName(name)
}
