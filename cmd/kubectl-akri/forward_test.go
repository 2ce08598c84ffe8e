package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwarder serves port-forwards over SPDY only, as API servers before Kubernetes 1.30
// do. It forwards to target, or fails as the kubelet does if target is empty. The
// WebSocket is tested on a real kubelet (e2e).
func forwarder(t *testing.T, target string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/ns/pods/agent/portforward" {
			http.Error(w, r.Method+" "+r.URL.Path, http.StatusBadRequest)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 2)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if connection == nil {
			t.Error("no SPDY connection")
			return
		}
		defer connection.Close()
		failures, data := <-streams, <-streams
		if data.Headers().Get(corev1.PortHeader) != "8089" || failures.Headers().Get(corev1.StreamType) != corev1.StreamTypeError {
			t.Errorf("streams %v and %v", failures.Headers(), data.Headers())
		}
		if target == "" {
			_, _ = io.WriteString(failures, "connect: connection refused")
			failures.Close()
			data.Close()
		} else {
			failures.Close()
			pipe(t, data, target)
		}
		<-connection.CloseChan()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func pipe(t *testing.T, stream httpstream.Stream, target string) {
	t.Helper()
	connection, err := net.Dial("tcp", target)
	if err != nil {
		t.Error(err)
		return
	}
	go func() {
		_, _ = io.Copy(connection, stream)
		connection.Close()
	}()
	_, _ = io.Copy(stream, connection)
	stream.Close()
}

func TestGetForwarded(t *testing.T) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/state":
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		case "/large":
			for range maxForwardedBytes/(1<<20) + 1 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			}
		case "/stuck":
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(agent.Close)
	address := agent.Listener.Addr().String()
	pod := types.NamespacedName{Namespace: "ns", Name: "agent"}
	body, err := getForwarded(t.Context(), forwarder(t, address), pod, 8089, "/state")
	if err != nil || len(body) != 1<<20 {
		t.Fatalf("got %d bytes, %v", len(body), err)
	}
	if _, err := getForwarded(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, pod, 8089, "/state"); err == nil {
		t.Error("no error without an API server")
	}
	for name, c := range map[string]struct {
		target, pod, path, want string
		timeout                 time.Duration
	}{
		"nothing listens": {"", "agent", "/state", "connect: connection refused", time.Minute},
		"not found":       {address, "agent", "/nope", "404", time.Minute},
		"too large":       {address, "agent", "/large", "more than", time.Minute},
		"no response":     {address, "agent", "/stuck", "no response", time.Second},
		"an unknown Pod":  {address, "other", "/state", "pods/other/portforward", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			defer cancel()
			_, err := getForwarded(ctx, forwarder(t, c.target), types.NamespacedName{Namespace: "ns", Name: c.pod}, 8089, c.path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that contains %q", err, c.want)
			}
		})
	}
}
