package webhook

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// maxConnections is the number of open connections. The API server uses one for each
// request at a time; reviewHandler admits fewer requests than that.
const maxConnections = 256

// connections bounds the open connections of a server. If there are too many, it closes
// the oldest one without a valid request, so that other clients cannot use up the
// connections of the API server.
type connections struct {
	mu sync.Mutex
	// unproven has the connections without a valid request so far, oldest first, and
	// elements finds them there. A proven connection has a nil element.
	unproven *list.List
	elements map[net.Conn]*list.Element
}

func newConnections() *connections {
	return &connections{unproven: list.New(), elements: map[net.Conn]*list.Element{}}
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// attach bounds the connections of a server that is not serving yet.
func (c *connections) attach(server *http.Server) {
	server.ConnState = func(connection net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if excess := c.open(connection); excess != nil {
				_ = abort(excess)
			}
		case http.StateClosed, http.StateHijacked:
			c.closed(connection)
		}
	}
	server.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connection)
	}
}

// open records a connection. It returns the one to close if there are too many.
func (c *connections) open(connection net.Conn) (excess net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elements[connection] = c.unproven.PushBack(connection)
	if len(c.elements) <= maxConnections {
		return nil
	}
	oldest := c.unproven.Front()
	excess = oldest.Value.(net.Conn)
	c.unproven.Remove(oldest)
	delete(c.elements, excess)
	return excess
}

// prove records that the connection of a request is the API server's.
func (c *connections) prove(ctx context.Context) {
	connection, _ := ctx.Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.elements[connection]; element != nil {
		c.unproven.Remove(element)
		c.elements[connection] = nil
	}
}

func (c *connections) closed(connection net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.elements[connection]; element != nil {
		c.unproven.Remove(element)
	}
	delete(c.elements, connection)
}

// abort closes a connection without waiting for the other side.
func abort(connection net.Conn) error {
	if encrypted, ok := connection.(*tls.Conn); ok {
		return encrypted.NetConn().Close()
	}
	return connection.Close()
}
