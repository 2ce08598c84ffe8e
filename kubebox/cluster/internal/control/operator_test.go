package control

import (
	"context"
	"io"
	"os"
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
