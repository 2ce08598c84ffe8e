package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func serveTest(t *testing.T, h Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	if err := Serve(t.Context(), path, h); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilesArePassedInBothDirections(t *testing.T) {
	path := serveTest(t, func(_ context.Context, r Request, files []*os.File) (Response, []*os.File) {
		io.WriteString(files[0], "written by the server to "+r.Name)
		back, err := os.Open("/proc/self/comm")
		if err != nil {
			return Response{Error: err.Error()}, nil
		}
		return Response{Exit: 3}, []*os.File{back}
	})
	near, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	response, files, err := Call(t.Context(), path, Request{Op: Exec, Name: "a pipe"}, far)
	far.Close()
	if err != nil || response.Exit != 3 || len(files) != 1 {
		t.Fatalf("got %+v, %v, %v", response, files, err)
	}
	defer files[0].Close()
	if got, _ := io.ReadAll(near); string(got) != "written by the server to a pipe" {
		t.Errorf("the pipe contains %q", got)
	}
	if got, _ := io.ReadAll(files[0]); len(got) == 0 {
		t.Error("the returned file is empty")
	}
}

func TestErrorsAreReturned(t *testing.T) {
	path := serveTest(t, func(context.Context, Request, []*os.File) (Response, []*os.File) {
		return Response{Error: "no such node"}, nil
	})
	if _, _, err := Call(t.Context(), path, Request{Op: Dial}); err == nil || !strings.Contains(err.Error(), "no such node") {
		t.Errorf("got %v", err)
	}
}

func TestDisconnectCancelsTheRequest(t *testing.T) {
	cancelled := make(chan struct{})
	path := serveTest(t, func(ctx context.Context, _ Request, _ []*os.File) (Response, []*os.File) {
		<-ctx.Done()
		close(cancelled)
		return Response{}, nil
	})
	ctx, disconnect := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer disconnect()
	if _, _, err := Call(ctx, path, Request{Op: Exec}); err == nil {
		t.Error("the call succeeded")
	}
	select {
	case <-cancelled:
	case <-time.After(5 * time.Second):
		t.Error("the request was not cancelled")
	}
}

func TestOversizedMessageIsNotSent(t *testing.T) {
	path := serveTest(t, func(context.Context, Request, []*os.File) (Response, []*os.File) { return Response{}, nil })
	_, _, err := Call(t.Context(), path, Request{Op: Exec, Args: []string{strings.Repeat("x", maxPacket)}})
	if err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("got %v", err)
	}
}

func TestResponseThatCannotBeSent(t *testing.T) {
	path := serveTest(t, func(context.Context, Request, []*os.File) (Response, []*os.File) {
		return Response{Address: strings.Repeat("x", maxPacket)}, nil
	})
	if _, _, err := Call(t.Context(), path, Request{Op: Dial}); err == nil || !strings.Contains(err.Error(), "sending the response: ") {
		t.Errorf("got %v", err)
	}
}

func TestServerThatDoesNotRespond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen(network, path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, maxPacket))
			conn.Close()
		}
	}()
	if _, _, err := Call(t.Context(), path, Request{Op: Dial}); !errors.Is(err, ErrNoResponse) {
		t.Errorf("got %v", err)
	}
}
