package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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

func TestDisconnectCancelsTheRequest(t *testing.T) {
	cancelled := make(chan struct{})
	path := serveTest(t, func(ctx context.Context, _ Request, _ []*os.File) (Response, []*os.File) {
		<-ctx.Done()
		close(cancelled)
		return Response{}, nil
	})
	ctx, disconnect := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer disconnect()
	if _, _, err := Call(ctx, path, Request{Op: Exec}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	select {
	case <-cancelled:
	case <-time.After(5 * time.Second):
		t.Error("the request was not cancelled")
	}
}

func TestMessagesAreLimited(t *testing.T) {
	path := serveTest(t, func(_ context.Context, r Request, _ []*os.File) (Response, []*os.File) {
		return Response{Exit: len(r.Args[0])}, nil
	})
	empty, err := json.Marshal(Request{Op: Exec, Args: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	most := maxPacket - len(empty)
	response, _, err := Call(t.Context(), path, Request{Op: Exec, Args: []string{strings.Repeat("x", most)}})
	if err != nil || response.Exit != most {
		t.Errorf("at the limit: %+v, %v", response, err)
	}
	_, _, err = Call(t.Context(), path, Request{Op: Exec, Args: []string{strings.Repeat("x", most+1)}})
	if err == nil || err.Error() != "the control message is 131073 bytes long, over the limit of 131072" {
		t.Errorf("over the limit: %v", err)
	}
}
