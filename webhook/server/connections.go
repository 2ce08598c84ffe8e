package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConnections is the number of open connections. The API server uses one for each
// request at a time.
const maxConnections = 256

// connections bounds the open connections of a server. If there are too many, it closes
// the oldest one without a valid request, so that other clients cannot use up the
// connections of the API server.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	// unproven are those without a valid request so far, oldest first.
	unproven []net.Conn
}

func newConnections() *connections { return &connections{open: map[net.Conn]bool{}} }

// changed is told of connections that open and close.
func (c *connections) changed(connection net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if excess := c.add(connection); excess != nil {
			abort(excess)
		}
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forget(connection)
	}
}

// add records a connection. It returns the one to close if there are too many.
func (c *connections) add(connection net.Conn) (excess net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[connection], c.unproven = true, append(c.unproven, connection)
	if len(c.open) > maxConnections {
		excess = c.unproven[0]
		c.forget(excess)
	}
	return excess
}

// forget removes a connection. The caller holds the lock.
func (c *connections) forget(connection net.Conn) {
	delete(c.open, connection)
	c.proven(connection)
}

// proven records that a connection is the API server's. The caller holds the lock.
func (c *connections) proven(connection net.Conn) {
	c.unproven = slices.DeleteFunc(c.unproven, func(other net.Conn) bool { return other == connection })
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// withConnection returns the context of a connection's requests.
func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// prove records that the connection of a request is the API server's.
func (c *connections) prove(ctx context.Context) {
	connection, _ := ctx.Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proven(connection)
}

// abort closes a connection without waiting for the other side.
func abort(connection net.Conn) {
	if encrypted, ok := connection.(*tls.Conn); ok {
		connection = encrypted.NetConn()
	}
	_ = connection.Close()
}
