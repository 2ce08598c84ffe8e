package browser

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// front leads connections to a server that may be replaced, as a Service does: each
// connection to the server of that time.
type front struct {
	address     string
	server      atomic.Value // string
	connections atomic.Int64 // that have been made
}

// newFront returns the front of a server.
func newFront(t testing.TB, server string) *front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{address: listener.Addr().String()}
	f.server.Store(server)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { f.relay(client.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		tasks.Wait() // relays end with the browser
	})
	return f
}

// relay copies between a client and the current server until both have closed.
func (f *front) relay(client *net.TCPConn) {
	defer client.Close()
	connection, err := net.Dial("tcp", f.server.Load().(string))
	if err != nil {
		return
	}
	f.connections.Add(1)
	server := connection.(*net.TCPConn)
	defer server.Close()
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(server, client) // either side may close at any time
		_ = server.CloseWrite()
	})
	_, _ = io.Copy(client, server)
	_ = client.CloseWrite()
	copying.Wait()
}

// serve starts a web server, and returns its URL.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
