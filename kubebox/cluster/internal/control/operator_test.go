package control

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

var table = process.NewTable() // there can be only one per process

// newOperator returns an operator of two components that are not running.
func newOperator() *Operator {
	o := &Operator{Table: table, Env: os.Environ()}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		o.Components = append(o.Components, &process.Component{Name: name, Table: table})
	}
	return o
}

// null opens the null device a number of times.
func null(t *testing.T, times int) []*os.File {
	t.Helper()
	var files []*os.File
	for range times {
		f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	return files
}

func TestInvalidRequestsAreRejected(t *testing.T) {
	const incomplete = "the request must have a command and three standard files"
	for _, tc := range []struct {
		reason  string
		request wire.Request
		files   int
		want    string
	}{
		{"no operation", wire.Request{}, 0, `unknown operation ""`},
		{"an operation of another version", wire.Request{Op: "dance"}, 0, `unknown operation "dance"`},
		{
			"an unknown component", wire.Request{Op: wire.Control, Name: "kubelet", Action: "stop"}, 0,
			`unknown component "kubelet": choose from ["etcd" "kube-apiserver"]`,
		},
		{"a state that does not fit", wire.Request{Op: wire.Control, Name: "etcd", Action: "stop"}, 0, "etcd is not running"},
		{"an unknown action", wire.Request{Op: wire.Control, Name: "etcd", Action: "dance"}, 0, `unknown action "dance" for etcd: use one of `},
		{"no command", wire.Request{Op: wire.Exec}, 3, incomplete},
		{"no files", wire.Request{Op: wire.Exec, Args: []string{"true"}}, 0, incomplete},
		{"no standard error", wire.Request{Op: wire.Exec, Args: []string{"true"}}, 2, incomplete},
		{"a file too many", wire.Request{Op: wire.Exec, Args: []string{"true"}}, 4, incomplete},
		{
			"no such program", wire.Request{Op: wire.Exec, Args: []string{"no-such-program"}}, 3,
			`exec: "no-such-program": executable file not found`,
		},
		{"no such network", wire.Request{Op: wire.Dial, Network: "ipx", Address: "10.0.0.1:80"}, 0, "unknown network ipx"},
		{"no such network to listen", wire.Request{Op: wire.Listen, Network: "ipx", Address: ":80"}, 0, "unknown network ipx"},
	} {
		response, files := newOperator().Handle(t.Context(), tc.request, null(t, tc.files))
		if !strings.Contains(response.Error, tc.want) || len(files) != 0 {
			t.Errorf("%s\n got %+v and %d files\nwant %s", tc.reason, response, len(files), tc.want)
		}
	}
}

func TestCommandReportsItsStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 3": 3, "kill -TERM $$": 128 + 15, "true": 0} {
		request := wire.Request{Op: wire.Exec, Args: []string{"sh", "-c", script}}
		if response, _ := newOperator().Handle(t.Context(), request, null(t, 3)); response.Error != "" || response.Exit != want {
			t.Errorf("%s: got %+v, want %d", script, response, want)
		}
	}
}

// TestCommandIsKilledWithItsCaller waits for output, then disconnects.
func TestCommandIsKilledWithItsCaller(t *testing.T) {
	near, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	files := append(null(t, 1), far, far)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	exited := make(chan wire.Response, 1)
	go func() {
		defer far.Close()
		response, _ := newOperator().Handle(ctx, wire.Request{Op: wire.Exec, Args: []string{"sh", "-c", "echo; exec sleep 100"}}, files)
		exited <- response
	}()
	if _, err := io.ReadFull(near, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	disconnect()
	select {
	case response := <-exited:
		if response.Exit != 128+9 {
			t.Errorf("got %+v", response)
		}
	case <-time.After(10 * time.Second):
		t.Error("the command was not killed")
	}
}

// TestSocketsArePassed checks that a socket is open after its creator has closed its own.
func TestSocketsArePassed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, files := newOperator().Handle(t.Context(), wire.Request{Op: wire.Listen, Network: "unix", Address: path}, nil)
	if len(files) != 1 {
		t.Fatalf("%d listeners", len(files))
	}
	defer files[0].Close()
	listener, err := net.FileListener(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, files = newOperator().Handle(t.Context(), wire.Request{Op: wire.Dial, Network: "unix", Address: path}, nil)
	if len(files) != 1 {
		t.Fatalf("%d connections", len(files))
	}
	defer files[0].Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted.Close()
}
