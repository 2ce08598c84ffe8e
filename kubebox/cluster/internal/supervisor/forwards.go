package supervisor

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/readiness"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// resolveTimeout bounds how long a connection waits for the endpoints of its Service.
const resolveTimeout = 5 * time.Second

// forwards are the Services that are reachable from the machine, with the addresses
// there. A forward ends with the supervisor.
type forwards struct {
	mu        sync.Mutex
	addresses map[string]string
}

// forward begins to forward connections from the passed listener to the Service that the
// request names. A Service that is already forwarded keeps its address.
func (s *Supervisor) forward(r wire.Request, files []*os.File) (wire.Response, error) {
	namespace, rest, _ := strings.Cut(r.Name, "/")
	service, port, _ := strings.Cut(rest, ":")
	switch {
	case !s.config.Isolated:
		return wire.Response{}, errors.New("the cluster has no nodes, so no Service has endpoints")
	case len(files) != 1 || namespace == "" || service == "" || port == "":
		return wire.Response{}, errors.New("the request must have a listener, and a name of the form NAMESPACE/SERVICE:PORT")
	}
	client, err := readiness.NewClient(s.config.server(), s.config.pki("ca.crt"), s.config.pki("admin.crt"), s.config.pki("admin.key"))
	if err != nil {
		return wire.Response{}, err
	}
	s.forwards.mu.Lock()
	defer s.forwards.mu.Unlock()
	if address, ok := s.forwards.addresses[r.Name]; ok {
		return wire.Response{Address: address}, nil
	}
	listener, err := net.FileListener(files[0])
	if err != nil {
		return wire.Response{}, err
	}
	if s.forwards.addresses == nil {
		s.forwards.addresses = map[string]string{}
	}
	s.forwards.addresses[r.Name] = listener.Addr().String()
	go forwardTo(listener, func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
		defer cancel()
		return client.Endpoint(ctx, namespace, service, port)
	})
	return wire.Response{Address: listener.Addr().String()}, nil
}

// forwardTo relays connections, each to the address that resolve returns for it.
func forwardTo(listener net.Listener, resolve func() (string, error)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			address, err := resolve()
			if err != nil {
				conn.Close() // the client sees a closed connection
				return
			}
			relay(conn.(*net.TCPConn), address)
		}()
	}
}
