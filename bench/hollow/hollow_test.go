package hollow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// kubeconfig names an API server that nothing connects to.
const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],` +
	`"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`

// serve runs Serve with commands, and returns its reports.
func serve(t *testing.T, dir, commands string) ([]Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := Serve(t.Context(), path, dir, strings.NewReader(commands), &out)
	var reports []Report
	for decoder := json.NewDecoder(&out); ; {
		var report Report
		if decoder.Decode(&report) != nil {
			return reports, err
		}
		reports = append(reports, report)
	}
}

func TestServe(t *testing.T) {
	reports, err := serve(t, t.TempDir(), `{"Start":0}{"Collect":true}`)
	if err != nil || len(reports) != 2 || reports[0].Agents != 0 || reports[0].Error != "" {
		t.Errorf("commands: got %+v, %v", reports, err)
	}
	_, err = serve(t, t.TempDir(), `{"Start":`)
	if got, want := fmt.Sprint(err), "read a command: unexpected EOF"; got != want {
		t.Errorf("half a command: got %q, want %q", got, want)
	}
	// The directory of the nodes cannot be created: the report says so, and the process goes on.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reports, err = serve(t, file, `{"Start":1}{}`)
	if err != nil || len(reports) != 2 {
		t.Fatalf("no directory: got %+v, %v", reports, err)
	}
	if want := "start the agent of node-0000: mkdir "; !strings.HasPrefix(reports[0].Error, want) {
		t.Errorf("no directory: got the error %q, want %q", reports[0].Error, want)
	}
	if reports[1].Error != "" || reports[1].Agents != 1 {
		t.Errorf("the report after a failed one: %+v", reports[1])
	}
}

func TestDo(t *testing.T) {
	for reply, want := range map[string]string{
		`{"Agents":3}`:                   "<nil>",
		`{"Agents":3,"Error":"no room"}`: "hollow agents: no room",
		``:                               "hollow agents: EOF", // the process has exited
	} {
		var sent bytes.Buffer
		p := &process{commands: json.NewEncoder(&sent), reports: json.NewDecoder(strings.NewReader(reply))}
		report, err := p.do(Command{Start: 3})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s: got the error %q, want %q", reply, got, want)
		}
		if reply != "" && report.Agents != 3 {
			t.Errorf("%s: got %+v", reply, report)
		}
		if got := strings.TrimSpace(sent.String()); got != `{"First":0,"Start":3,"Collect":false}` {
			t.Errorf("sent %s", got)
		}
	}
}

func TestAwaitReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := awaitReady(t.Context(), "unreachable://agent") // fails at once, without a connection
		if got, want := fmt.Sprint(err), "an agent did not become ready: timed out after 2m0s"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("took %v, want 2m", took)
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the agent ended"))
	err := awaitReady(ctx, "unreachable://agent")
	if got, want := fmt.Sprint(err), "an agent did not become ready: the agent ended"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	if err := awaitReady(t.Context(), server.URL); err != nil || calls.Load() != 3 {
		t.Errorf("ready at the third call: got %v after %d calls", err, calls.Load())
	}
}

func TestWarnings(t *testing.T) {
	var w warnings
	log := slog.New(&w).With("node", 1).WithGroup("g")
	log.Info("Started")
	log.Warn("Slow")
	log.Warn("Slow", "seconds", 3)
	log.Error("Failed")
	if got := w.counts(); len(got) != 2 || got["Slow"] != 2 || got["Failed"] != 1 {
		t.Errorf("got %v, want two Slow and one Failed", got)
	}
}

func TestCountedConn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "answer") }))
	defer server.Close()
	a := &agents{}
	conn, err := a.dial()(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const request = "GET / HTTP/1.0\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if a.sent.Load() != int64(len(request)) || a.received.Load() != int64(len(answer)) {
		t.Errorf("counted %d sent, %d received, want %d, %d", a.sent.Load(), a.received.Load(), len(request), len(answer))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.dial()(ctx, "tcp", server.Listener.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled dial: %v", err)
	}
}

func TestNode(t *testing.T) {
	n := Node{Dir: "/d", Number: 7}
	got := []string{n.Name(), n.UserAgent(), n.HandlersDir(), n.KubeletDir(), n.ProbeAddress(), Node{Number: 999}.ProbeAddress()}
	if want := "node-0007 akri-agent/7 /d/7/h /d/7/k 127.1.0.8:8081 127.1.3.250:8081"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
