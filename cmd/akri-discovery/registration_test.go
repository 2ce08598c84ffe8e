package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"akri.sh/akri/discovery/conformance"
	"akri.sh/akri/discovery/protocol"
)

// TestShared checks that handlers say whether several nodes see their devices.
func TestShared(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		name      string
		shared    bool
	}{
		"udev":                             {[]string{"udev"}, "udev", false},
		"onvif":                            {[]string{"onvif"}, "onvif", true},
		"onvif on a network of each node":  {[]string{"onvif", "--shared=false"}, "onvif", false},
		"opcua":                            {[]string{"opcua"}, "opcua", true},
		"opcua on a network of each node":  {[]string{"opcua", "--shared=false"}, "opcua", false},
		"mqtt":                             {[]string{"mqtt"}, "mqtt", true},
		"mqtt with a broker on each node":  {[]string{"mqtt", "--shared=false"}, "mqtt", false},
		"mdns":                             {[]string{"mdns"}, "mdns", true},
		"mdns on a network of each node":   {[]string{"mdns", "--shared=false"}, "mdns", false},
		"http":                             {[]string{"http"}, "http", true},
		"http on a network of each node":   {[]string{"http", "--shared=false"}, "http", false},
		"debugEcho with devices of a node": {[]string{"debug-echo", "--shared=false"}, "debugEcho", false},
		"debugEcho with shared devices":    {[]string{"debug-echo", "--shared=true"}, "debugEcho", true},
		"another name":                     {[]string{"udev", "--name=usb"}, "usb", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			agent, err := conformance.ListenAgent(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer agent.Close()
			stop := start(t, append(tc.arguments, "--discovery-handlers-dir="+dir)...)
			registration, err := agent.Await(t.Context(), "", time.Minute)
			stop()
			if err != nil {
				t.Fatal(err)
			}
			if registration.GetShared() != tc.shared || registration.GetName() != tc.name {
				t.Errorf("%q registered as %s with shared=%t", tc.arguments, registration.GetName(), registration.GetShared())
			}
		})
	}
}

// shortDir returns a directory whose path leaves room for the names of sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "akri")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// start runs a command, which must end without an error when it is stopped.
func start(t *testing.T, arguments ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	root := newRoot(func(string) string { return "" })
	root.SetArgs(append(arguments, "--log-level=error"))
	root.SetErr(io.Discard)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%q ended with %v", arguments, err)
		}
	})
}

// TestServe checks a handler with its probes and metrics.
func TestServe(t *testing.T) {
	dir, file := shortDir(t), filepath.Join(t.TempDir(), "availability")
	probes, metrics := freeAddress(t), freeAddress(t)
	defer start(t, "debug-echo", "--shared=true", "--availability-file="+file, "--discovery-handlers-dir="+dir,
		"--health-probe-bind-address="+probes, "--metrics-bind-address="+metrics)()
	agent, err := conformance.ListenAgent(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	for _, result := range agent.Check(t.Context(), "debugEcho", conformance.Case{
		Details: "descriptions: [a]", MinDevices: 1, Quiet: 100 * time.Millisecond, Patience: time.Minute,
		Change: func(context.Context) error { return os.WriteFile(file, []byte("OFFLINE"), 0o600) },
	}) {
		if result.Err != nil {
			t.Errorf("%s: %v", result.Rule, result.Err)
		}
	}
	if code, text := get(t, probes, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if _, text := get(t, metrics, "/metrics"); !strings.Contains(text, `akri_handler_device_changes_total{change="disappeared"} `) {
		t.Errorf("/metrics: %s", text)
	}
}

// TestStatic checks that equal requests to a handler that serves a site share one discovery.
func TestStatic(t *testing.T) {
	address, metrics := freeAddress(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	defer start(t, "debug-echo", "--shared=true", "--static", "--pod-ip=127.0.0.1", "--port="+port, "--metrics-bind-address="+metrics)()
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		request := &protocol.DiscoverRequest{DiscoveryDetails: "descriptions: [a]"}
		stream, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := stream.Recv(); err != nil || len(list.GetDevices()) != 1 {
			t.Fatalf("got %v, %v", list, err)
		}
	}
	if _, text := get(t, metrics, "/metrics"); !strings.Contains(text, "\nakri_handler_requests 1\n") {
		t.Errorf("three equal requests: %s", text)
	}
}
