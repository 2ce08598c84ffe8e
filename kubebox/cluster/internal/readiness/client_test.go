package readiness

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
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
	client, _ := serve(t, 403)
	ctx, cancel := context.WithTimeout(t.Context(), 4*interval)
	defer cancel()
	err := client.Create(ctx, "/api/v1/things", nil)
	if err == nil || !strings.Contains(err.Error(), "/api/v1/things") || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("got %v", err)
	}
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
