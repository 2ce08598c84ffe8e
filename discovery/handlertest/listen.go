package handlertest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Listen calls serve with each connection to an address, such as 127.0.0.1:0, and returns the
// address with its port. A connection is closed when serve returns, and when the test ends.
func Listen(t testing.TB, address string, serve func(connection net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer connection.Close()
				defer context.AfterFunc(ctx, func() { connection.Close() })()
				serve(connection)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		group.Wait()
	})
	return listener.Addr().String()
}
