package readiness

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/pki"
)

// serve returns a client of a server that sends the responses one after the other, each a
// status code, and repeats the last one.
func serve(t *testing.T, codes ...int) (client *Client, requests *[]string) {
	t.Helper()
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, r.Method+" "+r.URL.Path+" "+string(body))
		w.WriteHeader(codes[min(len(*requests), len(codes))-1])
	}))
	t.Cleanup(server.Close)
	return &Client{server: server.URL, http: server.Client()}, requests
}

// fixed is a server that sends one response again and again.
type fixed struct {
	code int
	body string
}

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f.code, Body: io.NopCloser(strings.NewReader(f.body))}, nil
}

// client returns a client of the server.
func (f fixed) client() *Client { return &Client{http: &http.Client{Transport: f}} }

func TestCreateTriesUntilTheObjectExists(t *testing.T) {
	for _, tc := range []struct {
		reason string
		codes  []int
	}{
		{"the namespace does not exist yet", []int{404, 404, 201}},
		{"the response to an earlier attempt was lost", []int{500, 409}},
	} {
		client, requests := serve(t, tc.codes...)
		if err := client.Create(t.Context(), "/api/v1/things", map[string]string{"a": "b"}); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if len(*requests) != len(tc.codes) || (*requests)[0] != `POST /api/v1/things {"a":"b"}` {
			t.Errorf("%s: the requests are %q", tc.reason, *requests)
		}
	}
}

func TestWaitEndsWithTheLastError(t *testing.T) {
	client := fixed{http.StatusForbidden, "no"}.client()
	assertWait(t, "an object to be created in /api/v1/things", "403 Forbidden: no", func(ctx context.Context) error {
		return client.Create(ctx, "/api/v1/things", nil)
	})
	assertWait(t, "the API server to be ready", "403 Forbidden: no", client.APIServer)
	assertWait(t, "the default ServiceAccount", "403 Forbidden: no", client.ServiceAccount)
}

func TestPortWaitsForConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	attempts := 0
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if attempts++; attempts < 3 {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := Port(ctx, "the listener", listener.Addr().String(), dial); err != nil || attempts != 3 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

// TestNodeIsAwaited checks what a Node lacks before it is ready.
func TestNodeIsAwaited(t *testing.T) {
	for _, tc := range []struct {
		node    string
		ready   string // in the error of Node; empty: none
		address string // in the error of NodeAddress; empty: none
	}{
		{"{}", "the node has no Ready condition yet", "the node has no address yet"},
		{"[]", "cannot unmarshal array", "cannot unmarshal array"},
		{`{"status": {"conditions": [{"type": "DiskPressure"}]}}`, "the node has no Ready condition yet", "the node has no address yet"},
		{`{"status": {"conditions": [{"type": "Ready", "status": "False", "message": "no CNI"}], "addresses": [{}]}}`, "no CNI", ""},
		{`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, "", "the node has no address yet"},
	} {
		client := fixed{http.StatusOK, tc.node}.client()
		assertWait(t, "node1 to be Ready", tc.ready, func(ctx context.Context) error { return client.Node(ctx, "node1") })
		assertWait(t, "the addresses of node1", tc.address, func(ctx context.Context) error { return client.NodeAddress(ctx, "node1") })
	}
}

// assertWait fails the test unless a wait ends with the last error at the deadline, or at
// once if want is empty.
func assertWait(t *testing.T, what, want string, wait func(context.Context) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := wait(ctx)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		begin := "waiting for " + what + ": context deadline exceeded (last error: "
		if err == nil || !strings.HasPrefix(err.Error(), begin) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", what, err, want)
		}
	})
}

func TestResponsesAreBounded(t *testing.T) {
	client := fixed{http.StatusForbidden, strings.Repeat("x", 1000)}.client()
	if _, err := client.get(t.Context(), "/"); err == nil || err.Error() != "403 Forbidden: "+strings.Repeat("x", 300) {
		t.Errorf("a long error: %v", err)
	}
	client = fixed{http.StatusOK, strings.Repeat("x", 2<<20)}.client()
	if body, err := client.get(t.Context(), "/"); err != nil || len(body) != 1<<20 {
		t.Errorf("a long response: %d bytes, %v", len(body), err)
	}
}

// TestAttemptsAreBounded counts the attempts within 12 seconds if nobody responds.
func TestAttemptsAreBounded(t *testing.T) {
	authority, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")
	for file, content := range map[string][]byte{cert: authority.Cert, key: authority.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, err := NewClient("https://10.99.0.1", cert, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what     string
		attempts int64
		wait     func(context.Context, Dial) error
	}{
		{"a request to the API server takes 5 s", 3, func(ctx context.Context, dial Dial) error {
			client.http.Transport.(*http.Transport).DialContext = dial
			return client.APIServer(ctx)
		}},
		{"a request to a kubelet takes 5 s", 3, func(ctx context.Context, dial Dial) error {
			return HTTP(ctx, "the kubelet", "http://127.0.0.1:10248/healthz", dial)
		}},
		{"a connection takes 1 s", 12, func(ctx context.Context, dial Dial) error {
			return Port(ctx, "kube-proxy", "10.96.0.10:53", func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, _ := dial(ctx, network, address)
				<-ctx.Done()
				conn.Close()
				return nil, ctx.Err()
			})
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var attempts atomic.Int64
			dial := func(context.Context, string, string) (net.Conn, error) {
				attempts.Add(1)
				near, far := net.Pipe()
				t.Cleanup(func() { far.Close() })
				return near, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			defer cancel()
			if err := tc.wait(ctx, dial); err == nil || attempts.Load() != tc.attempts {
				t.Errorf("%s: %d attempts, want %d: %v", tc.what, attempts.Load(), tc.attempts, err)
			}
		})
	}
}
