package device

import "k8s.io/apimachinery/pkg/types"

// Device is one device that this node can reach, published as an Instance.
type Device struct {
	// Instance is the Instance's namespace and name.
	Instance types.NamespacedName
	// Configuration is the name of the Instance's Configuration, which is in the
	// same namespace.
	Configuration string
	// ID is the discovery handler's id of the device.
	ID string
	// Shared means that other nodes can reach the device too.
	Shared bool
	// Capacity is how many containers may use the device at the same time, across
	// all nodes; at least 1.
	Capacity int32
	// Online is false while the device is missing but kept for its grace period. Its
	// slots are then unhealthy.
	Online bool

	// Properties become environment variables of the containers: the device's own,
	// overridden by the Configuration's brokerProperties.
	Properties map[string]string
	// Mounts and Files are added to the containers.
	Mounts []Mount
	Files  []File
}

// Mount is a file or directory of the host that is mounted into a container.
type Mount struct {
	ContainerPath string
	HostPath      string
	ReadOnly      bool
}

// File is a device file (/dev/…) of the host that a container gets.
type File struct {
	ContainerPath string
	HostPath      string
	// Permissions is a subset of "rwm": read, write, mknod.
	Permissions string
}

// Sink receives the devices of this node. The discovering half calls it, and the
// serving half implements it.
type Sink interface {
	// Publish replaces the devices of one Configuration with a list, which may be
	// empty. It does not wait for the kubelet or the API server. The caller lists a
	// device only once its Instance exists, and does not modify the list afterwards.
	Publish(configuration types.NamespacedName, devices []Device)
}
