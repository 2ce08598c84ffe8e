package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"akri.sh/akri/kubebox/cluster/internal/supervisor"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// Service is a port of a Service.
type Service struct {
	Namespace string
	Name      string
	Port      string // the port's name
}

// Forward makes a Service reachable from this machine at a loopback port until the
// cluster stops, and returns the address. The port 0 is any free one. If the Service is
// already forwarded, Forward returns the address that it has.
//
// Each connection leads to an endpoint that is ready at that time, so Pods may be
// replaced. It works without kube-proxy.
func (c *Cluster) Forward(ctx context.Context, service Service, port int) (address string, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	defer listener.Close() // the supervisor has a duplicate
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return "", err
	}
	defer file.Close()
	name := service.Namespace + "/" + service.Name + ":" + service.Port
	response, _, err := wire.Call(ctx, supervisor.ControlSocket(c.dir), wire.Request{Op: wire.Forward, Name: name}, file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return response.Address, nil
}
