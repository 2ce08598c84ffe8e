package supervisor

import (
	"io"
	"net"
)

// forward carries connections from a listener that belongs to the machine's
// network to an address in the cluster's.
func forward(listener net.Listener, address string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go relay(conn.(*net.TCPConn), address)
	}
}

// relay joins two connections; when one side says no more, so does the other.
func relay(outside *net.TCPConn, address string) {
	defer outside.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // the caller sees what it would see of a server that is down
	}
	inside := conn.(*net.TCPConn)
	defer inside.Close()
	done := make(chan struct{})
	go func() {
		io.Copy(inside, outside)
		inside.CloseWrite()
		close(done)
	}()
	io.Copy(outside, inside)
	outside.CloseWrite()
	<-done
}
