package udev

import (
	"context"
	"errors"
	"fmt"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

const (
	// kernelGroup is the netlink group of the kernel's messages. Group 2 has those of
	// udevd.
	kernelGroup = 1
	// receiveBuffer is the requested size of the socket's buffer, in bytes. The kernel
	// grants what net.core.rmem_max allows, or all with CAP_NET_ADMIN.
	receiveBuffer = 1 << 20
	// maxUeventMessage is more than the kernel sends: its buffer for properties has 2 KiB.
	maxUeventMessage = 8 << 10
)

// errLost means that messages were lost.
var errLost = errors.New("kernel events were lost: the buffer was full")

// ueventSocket receives the kernel's messages about devices.
type ueventSocket struct {
	conn    *socket.Conn
	message []byte
	control []byte
}

func openUevents() (*ueventSocket, error) {
	conn, err := socket.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT, "kobject-uevent", nil)
	if err != nil {
		return nil, fmt.Errorf("open the socket of kernel events: %w", err)
	}
	if err = conn.SetsockoptInt(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
		err = conn.SetsockoptInt(unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	if err == nil {
		err = conn.SetsockoptInt(unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}
	if err == nil {
		err = conn.Bind(&unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("receive kernel events: %w", err)
	}
	return &ueventSocket{conn: conn, message: make([]byte, maxUeventMessage), control: make([]byte, 128)}, nil
}

// receive returns the devices that the next message is about. It returns errLost after a
// loss; any other error is final.
func (s *ueventSocket) receive(ctx context.Context) ([]string, error) {
	for {
		n, controlLength, flags, from, err := s.conn.Recvmsg(ctx, s.message, s.control, 0)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			return nil, errLost
		case err != nil:
			return nil, fmt.Errorf("receive kernel events: %w", err)
		case !fromKernel(from, s.control[:controlLength]):
			continue
		case flags&unix.MSG_TRUNC != 0:
			return nil, errLost
		}
		if devPaths := devPathsOf(s.message[:n]); devPaths != nil {
			return devPaths, nil
		}
	}
}

// fromKernel reports whether the kernel has sent a message. Processes with CAP_NET_ADMIN
// can send to the group too.
func fromKernel(from unix.Sockaddr, control []byte) bool {
	address, ok := from.(*unix.SockaddrNetlink)
	if !ok || address.Pid != 0 {
		return false
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return false
	}
	credentials, err := unix.ParseUnixCredentials(&messages[0])
	return err == nil && credentials.Pid == 0 && credentials.Uid == 0
}

func (s *ueventSocket) close() { s.conn.Close() }
