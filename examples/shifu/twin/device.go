package main

import (
	"context"
	"net/http"
)

// The protocols of EdgeDevices that the twin knows.
const (
	protocolOPCUA = "OPCUA"
	protocolHTTP  = "HTTP"
)

// device is what the twin stands for.
type device interface {
	// handler serves an instruction, which the device knows by a node or a path.
	handler(instruction string) http.Handler
	// check returns an error unless the device answers an instruction.
	check(ctx context.Context, instruction string) error
	close()
}

// connect connects to the device of an EdgeDevice.
func connect(ctx context.Context, s deviceSpec) (device, error) {
	if s.Protocol == protocolHTTP {
		return newHTTPDevice(s.Address), nil
	}
	return connectOPCUA(ctx, s)
}
