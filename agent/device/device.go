// Package device holds what the two halves of the agent tell each other: the
// half that discovers (registry, streams, publish) says which devices this node
// can reach, and the half that serves the kubelet (slots, deviceplugin) offers
// them. It is data only.
package device

import "k8s.io/apimachinery/pkg/types"

// Device is one device that this node can reach, published as an Instance.
type Device struct {
	// Instance is the Instance's namespace and name.
	Instance types.NamespacedName
	// Configuration is the name of the Instance's Configuration, which lies in
	// the same namespace.
	Configuration string
	// ID is the discovery handler's name for the device.
	ID string
	// Shared tells whether other nodes can reach the device too.
	Shared bool
	// Capacity is how many containers may use the device at the same time, over
	// all nodes; at least 1.
	Capacity int32
	// Online is false while the device has gone but is kept for its grace
	// period: its slots are shown to the kubelet as unhealthy.
	Online bool

	// Properties become environment variables of the containers: the device's
	// own overlaid by the Configuration's brokerProperties.
	Properties map[string]string
	// Mounts and Files are given to the containers.
	Mounts []Mount
	Files  []File
}

// Mount is a file or folder of the host in a container.
type Mount struct {
	ContainerPath string
	HostPath      string
	ReadOnly      bool
}

// File is a device file (/dev/…) of the host in a container.
type File struct {
	ContainerPath string
	HostPath      string
	// Permissions is a subset of "rwm": read, write, mknod.
	Permissions string
}

// Sink takes the devices of this node. The discovering half calls it, the
// serving half implements it.
type Sink interface {
	// Publish replaces the devices of one Configuration by the list given,
	// which may be empty. It does not block on the kubelet or the API server.
	// Each Instance exists in the API server when it is first listed. The
	// caller does not change the list afterwards.
	Publish(configuration types.NamespacedName, devices []Device)
}
