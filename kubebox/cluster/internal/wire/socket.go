package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const (
	network   = "unixpacket" // preserves message boundaries
	maxPacket = 128 << 10
	maxFiles  = 8
)

// ErrNoResponse is returned by a Call whose connection was closed without a response, as by
// a server that exits.
var ErrNoResponse = errors.New("the supervisor closed the connection before it responded")

// Handler performs a request. After it returns, the files of the request and those it
// returned are closed.
type Handler func(ctx context.Context, r Request, files []*os.File) (Response, []*os.File)

// Serve serves requests on the socket path until ctx is done.
func Serve(ctx context.Context, path string, handle Handler) error {
	os.Remove(path)
	listener, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			go serve(ctx, conn, handle)
		}
	}()
	return nil
}

// serve handles one connection.
func serve(ctx context.Context, conn *net.UnixConn, handle Handler) {
	defer conn.Close()
	var request Request
	files, err := receive(conn, &request)
	defer closeAll(files)
	if err != nil {
		_ = send(conn, Response{Error: err.Error()}, nil)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the caller sends nothing more, so this read ends when it disconnects
		_, _ = conn.Read(make([]byte, 1))
		cancel()
	}()
	response, out := handle(ctx, request, files)
	defer closeAll(out)
	if err := send(conn, response, out); err != nil {
		_ = send(conn, Response{Error: fmt.Sprintf("sending the response: %v", err)}, nil) // the files may be the reason
	}
}

// Call sends a request with files to the socket path and waits for the response. The
// caller must close the returned files and its own.
func Call(ctx context.Context, path string, r Request, files ...*os.File) (Response, []*os.File, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, network, path)
	if err != nil {
		return Response{}, nil, err
	}
	conn := c.(*net.UnixConn)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := send(conn, r, files); err != nil {
		return Response{}, nil, err
	}
	var response Response
	got, err := receive(conn, &response)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if errors.Is(err, io.EOF) {
			err = ErrNoResponse
		}
		return Response{}, nil, fmt.Errorf("%s: %w", r.Op, err)
	}
	if response.Error != "" {
		closeAll(got)
		return response, nil, fmt.Errorf("%s: %s", r.Op, response.Error)
	}
	return response, got, nil
}

// send writes one message with files.
func send(conn *net.UnixConn, message any, files []*os.File) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > maxPacket {
		return fmt.Errorf("the control message is %d bytes long, over the limit of %d", len(body), maxPacket)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = conn.WriteMsgUnix(body, rights, nil)
	return err
}

// receive reads one message with files.
func receive(conn *net.UnixConn, message any) ([]*os.File, error) {
	body, rights := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, rn, _, _, err := conn.ReadMsgUnix(body, rights)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, json.Unmarshal(body[:n], message)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
