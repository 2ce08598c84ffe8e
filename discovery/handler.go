package discovery

import (
	"context"
	"fmt"
	"strings"

	"akri.sh/akri/discovery/protocol"
)

// Handler finds devices of one kind.
type Handler interface {
	// Discover looks for the requested devices and calls send with the full list:
	// once as soon as it knows the list, even if it is empty, and again whenever
	// the list changes. Agents keep what the first one lacks for 90 s, so Discover does
	// not wait for what is slow. It continues until ctx is done, and then returns promptly.
	//
	// Discover is called once for each Configuration and agent, each time in a
	// separate goroutine, so calls overlap. send must not be called
	// concurrently. It copies its argument. Its error means that the agent is
	// gone: return it.
	//
	// An error from [Invalid] tells the author of the Configuration what is wrong
	// with it. Any other error, and a return before ctx is done, counts as a failure
	// of the handler: its devices are kept for some time, and Discover is called
	// again. If there are no devices, send an empty list and return no error.
	Discover(ctx context.Context, request Request, send func([]Device) error) error
}

// Request is what a Configuration requests from a handler.
type Request struct {
	// Details is the Configuration's discoveryDetails, unchanged. By convention it
	// is YAML.
	Details string
	// Properties are the Configuration's discoveryProperties, with the values from
	// Secrets and ConfigMaps. A property without a value is nil.
	Properties map[string][]byte
}

// DisplayName is the property that tells people which device it is, such as "Logitech C920
// (/dev/video0)". Handlers may set it.
const DisplayName = "AKRI_DISPLAY_NAME"

// Device is a device that a handler has found.
type Device struct {
	// ID identifies the device among all that the handler may ever find. It must
	// not change as long as the device is the same, and a shared handler must use
	// the same ID on every node that sees the device.
	ID string
	// Properties become environment variables of the containers that use the
	// device.
	Properties map[string]string
	// Mounts and DeviceSpecs are given to those containers.
	Mounts      []Mount
	DeviceSpecs []DeviceSpec
}

// Mount is a file or directory of the node in a container.
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

// Invalid returns an error that the author of the Configuration must correct. The
// text should name the field, the cause and the remedy.
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

// invalidText replaces bytes of a device's texts that are not UTF-8: gRPC would end the
// stream, with all devices, because of them.
const invalidText = "\ufffd"

func responseFrom(devices []Device) *protocol.DiscoverResponse {
	message := &protocol.DiscoverResponse{Devices: make([]*protocol.Device, 0, len(devices))}
	for _, device := range devices {
		message.Devices = append(message.Devices, device.message())
	}
	return message
}

func (d Device) message() *protocol.Device {
	message := &protocol.Device{Id: strings.ToValidUTF8(d.ID, invalidText), Properties: make(map[string]string, len(d.Properties))}
	for name, value := range d.Properties {
		message.Properties[strings.ToValidUTF8(name, invalidText)] = strings.ToValidUTF8(value, invalidText)
	}
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
