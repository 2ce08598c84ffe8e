package discovery

import (
	"context"
	"fmt"

	"akri.sh/akri/discovery/protocol"
)

// Handler finds devices of one kind.
type Handler interface {
	// Discover looks for the devices that the request asks for, and calls send
	// with the full list of them: once as soon as it knows what is there, even
	// if that is nothing, and again each time the list has changed. It goes on
	// until ctx ends, then returns promptly.
	//
	// It is called once for each Configuration and agent, from goroutines of
	// their own, so calls overlap. send must not be called by two goroutines at
	// once; it copies what it is given, and its error means that the agent has
	// gone: return it.
	//
	// An error made by [Invalid] tells the author of the Configuration what is
	// wrong with it. Any other error, and a return while ctx has not ended, is
	// taken for a failure of the handler: the devices it found stay for a while
	// and Discover is called again. "Nothing found" is an empty list and no
	// error.
	Discover(ctx context.Context, request Request, send func([]Device) error) error
}

// Request is what a Configuration asks of a handler.
type Request struct {
	// Details is the Configuration's discoveryDetails as written; by convention
	// YAML.
	Details string
	// Properties are the Configuration's discoveryProperties, Secrets and
	// ConfigMaps read. A property that was named without a value is nil.
	Properties map[string][]byte
}

// Device is something a handler has found.
type Device struct {
	// ID tells the device from all others the handler may ever find: it must
	// not change while the device is the same, and two nodes that see the same
	// device of a shared handler must give it the same id.
	ID string
	// Properties become environment variables of the containers that use the
	// device.
	Properties map[string]string
	// Mounts and DeviceSpecs are given to those containers.
	Mounts      []Mount
	DeviceSpecs []DeviceSpec
}

// Mount is a file or folder of the node in a container.
type Mount struct {
	ContainerPath string
	HostPath      string
	ReadOnly      bool
}

// DeviceSpec is a device file of the node in a container.
type DeviceSpec struct {
	ContainerPath string
	HostPath      string
	// Permissions is a subset of "rwm": read, write, mknod.
	Permissions string
}

// Invalid says that a request cannot be served because of what its author
// wrote. The text should name the field, the cause and what to write instead.
func Invalid(format string, arguments ...any) error {
	return &invalidError{fmt.Errorf(format, arguments...)}
}

type invalidError struct{ cause error }

func (e *invalidError) Error() string { return e.cause.Error() }
func (e *invalidError) Unwrap() error { return e.cause }

func requestFrom(message *protocol.DiscoverRequest) Request {
	request := Request{Details: message.GetDiscoveryDetails(), Properties: make(map[string][]byte, len(message.GetDiscoveryProperties()))}
	for name, data := range message.GetDiscoveryProperties() {
		request.Properties[name] = data.GetVec()
	}
	return request
}

func responseFrom(devices []Device) *protocol.DiscoverResponse {
	message := &protocol.DiscoverResponse{Devices: make([]*protocol.Device, 0, len(devices))}
	for _, device := range devices {
		message.Devices = append(message.Devices, device.message())
	}
	return message
}

func (d Device) message() *protocol.Device {
	message := &protocol.Device{Id: d.ID, Properties: d.Properties}
	for _, mount := range d.Mounts {
		message.Mounts = append(message.Mounts, &protocol.Mount{
			ContainerPath: mount.ContainerPath, HostPath: mount.HostPath, ReadOnly: mount.ReadOnly,
		})
	}
	for _, spec := range d.DeviceSpecs {
		message.DeviceSpecs = append(message.DeviceSpecs, &protocol.DeviceSpec{
			ContainerPath: spec.ContainerPath, HostPath: spec.HostPath, Permissions: spec.Permissions,
		})
	}
	return message
}
