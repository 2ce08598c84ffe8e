package udev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"

	"akri.sh/akri/internal/backoff"
)

const (
	// kernelGroup is the netlink group of the kernel's messages. Group 2 has those of
	// udevd, which stay in its own network namespace.
	kernelGroup = 1
	// receiveBuffer is the requested size of the socket's buffer, in bytes. The kernel
	// grants what net.core.rmem_max allows, or all with CAP_NET_ADMIN.
	receiveBuffer = 1 << 20
	// maxUeventMessage is more than the kernel sends: its buffer for properties has 2 KiB.
	maxUeventMessage = 8 << 10
	// reopenInterval is how long a socket is left alone that cannot be opened.
	reopenInterval = time.Minute
	// maxEvents bounds the events that wait for a request. Further ones wait in the
	// kernel's buffer; when it is full, everything is scanned.
	maxEvents = 1000
)

// errLost means that messages were lost.
var errLost = errors.New("kernel events were lost: the buffer was full")

// source is where events come from.
type source interface {
	// next waits for an event, and returns the devices that it is about. An error other
	// than errLost is final.
	next(ctx context.Context) (devPaths []string, err error)
	close()
}

// receive sends the devices with events to a channel until ctx is done. The source may
// have failed to open; while it cannot be opened, scans replace it.
func (h *Handler) receive(ctx context.Context, from source, err error, events chan<- string) {
	for {
		if err == nil {
			err = h.distribute(ctx, from, events)
			from.close()
		}
		if ctx.Err() == nil {
			h.tree.failed(failedUevents)
			slog.Warn("Kernel events cannot be received; until they can, devices are found by scans only", "err", err)
		}
		if !backoff.Sleep(ctx, reopenInterval) {
			return
		}
		from, err = h.openEvents() // the next scan finds what has happened meanwhile
	}
}

// distribute sends the devices with events to a channel until the source fails.
func (h *Handler) distribute(ctx context.Context, from source, events chan<- string) error {
	for {
		devPaths, err := from.next(ctx)
		switch {
		case errors.Is(err, errLost):
			h.tree.failed(failedEventsLost)
			devPaths = []string{allDevices}
		case err != nil:
			return err
		}
		for _, devPath := range devPaths {
			select {
			case events <- devPath:
			case <-ctx.Done():
			}
		}
	}
}

// ueventSocket receives the kernel's messages about devices.
type ueventSocket struct {
	conn    *socket.Conn
	message []byte
}

func openUevents() (source, error) {
	conn, err := socket.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT, "kobject-uevent", nil)
	if err != nil {
		return nil, fmt.Errorf("open the socket of kernel events: %w", err)
	}
	if err = conn.SetReadBuffer(receiveBuffer); err == nil {
		err = conn.Bind(&unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("receive kernel events: %w", err)
	}
	return &ueventSocket{conn: conn, message: make([]byte, maxUeventMessage)}, nil
}

// next implements source.
func (s *ueventSocket) next(ctx context.Context) ([]string, error) {
	n, from, err := s.conn.Recvfrom(ctx, s.message, 0)
	switch {
	case errors.Is(err, unix.ENOBUFS):
		return nil, errLost
	case err != nil:
		return nil, fmt.Errorf("receive kernel events: %w", err)
	case !isKernel(from):
		return nil, nil
	}
	return devPathsOf(s.message[:n]), nil
}

// isKernel reports whether the kernel has sent a message. Processes with CAP_NET_ADMIN can
// send to the group too, but none can have the port 0.
func isKernel(from unix.Sockaddr) bool {
	address, ok := from.(*unix.SockaddrNetlink)
	return ok && address.Pid == 0
}

func (s *ueventSocket) close() { s.conn.Close() }

// devPathsOf returns the devices that a kernel's message is about: one, or two if a
// device got another name. The message is "ACTION@DEVPATH" and KEY=VALUE, each ended by
// a zero byte.
func devPathsOf(message []byte) []string {
	header, rest, ok := strings.Cut(string(message), "\x00")
	_, devPath, separated := strings.Cut(header, "@")
	if !ok || !separated || !isDevPath(devPath) {
		return nil // of a module, a driver or a bus, or not the kernel's format
	}
	devPaths := []string{devPath}
	for entry := range strings.SplitSeq(rest, "\x00") {
		if former, ok := strings.CutPrefix(entry, "DEVPATH_OLD="); ok && isDevPath(former) {
			devPaths = append(devPaths, former)
		}
	}
	return devPaths
}
