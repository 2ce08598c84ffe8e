package supervisor

import (
	"io"
	"net"
)

// relay copies between two connections; when one side closes for writing, so does the
// other.
func relay(outside *net.TCPConn, address string) {
	defer outside.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // the client sees a closed connection
	}
	inside := conn.(*net.TCPConn)
	defer inside.Close()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(inside, outside)
		_ = inside.CloseWrite()
		close(done)
	}()
	_, _ = io.Copy(outside, inside)
	_ = outside.CloseWrite()
	<-done
}
