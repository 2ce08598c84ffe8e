package discovery

import (
	"context"

	"akri.sh/akri/discovery/internal/budget"
)

// What a request takes of the handler's memory, in addition to its text, and what its list
// of devices does. Measured with Akri's handlers: a list is known to the handler, to what
// compares it with the next one, and to the connection until the agent has read it.
const (
	requestBytes  = 32 << 10
	requestCopies = 4
	deviceBytes   = 1024
	entryBytes    = 128
	textCopies    = 2
)

// Bound returns a handler whose requests, and the lists of devices that it sends, share
// the handler's memory: half of GOMEMLIMIT, or 24 MiB without it. If they exceed it, the
// request that takes the most ends with an error. [Serve] calls it, unless the handler has
// a method Bounded, which says that it calls a bound one itself.
func Bound(handler Handler) Handler {
	if _, ok := handler.(interface{ Bounded() }); ok {
		return handler
	}
	return &bound{handler}
}

type bound struct{ handler Handler }

// Bounded marks a handler that is bound.
func (*bound) Bounded() {}

// Discover implements [Handler].
func (b *bound) Discover(ctx context.Context, request Request, send func([]Device) error) error {
	return budget.Process().Run(ctx, func(ctx context.Context) error {
		requested, listed := budget.Open(ctx), budget.Open(ctx)
		if err := requested.Set(sizeOfRequest(request)); err != nil {
			return err
		}
		return b.handler.Discover(ctx, request, func(devices []Device) error {
			if err := listed.Set(sizeOfList(devices)); err != nil {
				return err
			}
			return send(devices)
		})
	})
}

func sizeOfRequest(request Request) int {
	size := requestBytes + requestCopies*len(request.Details)
	for name, value := range request.Properties {
		size += entryBytes + requestCopies*(len(name)+len(value))
	}
	return size
}

func sizeOfList(devices []Device) int {
	size := 0
	for _, d := range devices {
		text := len(d.ID)
		for name, value := range d.Properties {
			text += len(name) + len(value)
		}
		for _, mount := range d.Mounts {
			text += len(mount.ContainerPath) + len(mount.HostPath)
		}
		for _, spec := range d.DeviceSpecs {
			text += len(spec.ContainerPath) + len(spec.HostPath) + len(spec.Permissions)
		}
		size += deviceBytes + entryBytes*(len(d.Properties)+len(d.Mounts)+len(d.DeviceSpecs)) + textCopies*text
	}
	return size
}
