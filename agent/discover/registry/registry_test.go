package registry

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anywhere permits handlers at all addresses.
var anywhere = Network{Addresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}

func register(t *testing.T, directory string, request *protocol.RegisterDiscoveryHandlerRequest) error {
	t.Helper()
	connection, err := grpc.NewClient(
		"unix:"+filepath.Join(directory, protocol.RegistrationSocket),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, err = protocol.NewRegistrationClient(connection).RegisterDiscoveryHandler(t.Context(), request)
	return err
}

func TestRegistrations(t *testing.T) {
	const network = protocol.RegisterDiscoveryHandlerRequest_NETWORK
	for name, tc := range map[string]struct {
		request *protocol.RegisterDiscoveryHandlerRequest
		want    Endpoint
		refused string // part of the message
	}{
		"a socket": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "udev", Endpoint: "/var/lib/akri/udev.sock"},
			want:    Endpoint{Name: "udev", Address: "/var/lib/akri/udev.sock"},
		},
		"a socket with a scheme": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "udev", Endpoint: "unix:///run/udev.sock"},
			want:    Endpoint{Name: "udev", Address: "/run/udev.sock"},
		},
		"an address with a scheme": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "onvif", Endpoint: "http://10.0.0.7:10000", EndpointType: network},
			want:    Endpoint{Name: "onvif", Network: true, Address: "10.0.0.7:10000"},
		},
		"an address without a scheme": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "onvif", Endpoint: "[fd00::7]:10000", EndpointType: network},
			want:    Endpoint{Name: "onvif", Network: true, Address: "[fd00::7]:10000"},
		},
		"a trailing slash": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "onvif", Endpoint: "http://10.0.0.7:10000/", EndpointType: network},
			want:    Endpoint{Name: "onvif", Network: true, Address: "10.0.0.7:10000"},
		},
		"TLS": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "x", Endpoint: "https://10.0.0.7:10000", EndpointType: network},
			refused: "--network-handlers-ca-file",
		},
		"no port": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "x", Endpoint: "http://10.0.0.7", EndpointType: network},
			refused: "want http://HOST:PORT",
		},
		"a relative path": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "x", Endpoint: "x.sock"},
			refused: "absolute path",
		},
		"no name": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Endpoint: "/x.sock"},
			refused: "name is empty",
		},
		"a long name": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: strings.Repeat("x", 300), Endpoint: "/x.sock"},
			refused: "300 bytes",
		},
		"a long path": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "x", Endpoint: "/" + strings.Repeat("x", 300)},
			refused: "301 bytes",
		},
		"an unknown type": {
			request: &protocol.RegisterDiscoveryHandlerRequest{Name: "x", Endpoint: "/x.sock", EndpointType: 7},
			refused: "endpoint_type 7: want UDS (0) or NETWORK (1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry, directory := serve(t)
			err := register(t, directory, tc.request)
			if tc.refused != "" {
				if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got %v, want InvalidArgument with %q", err, tc.refused)
				}
				if len(registry.Snapshot()) != 0 {
					t.Error("a refused handler was added")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if known := registry.Snapshot(); len(known) != 1 || known[0].Endpoint != tc.want || known[0].State != Waiting {
				t.Errorf("the endpoints are %+v, want %+v, Waiting", known, tc.want)
			}
		})
	}
}

// A handler that registers all the time does so at a bounded rate, whatever changes.
func TestRegistrationsAreBounded(t *testing.T) {
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		service := newRegistrationService(New(directory, anywhere, slog.New(slog.DiscardHandler)))
		const seconds = 10
		began, registrations := time.Now(), 0
		for ; time.Since(began) < seconds*time.Second; registrations++ {
			_, err := service.RegisterDiscoveryHandler(t.Context(), &protocol.RegisterDiscoveryHandlerRequest{
				Name: "udev", Endpoint: "/run/udev.sock", Shared: registrations%2 == 0,
			})
			if err != nil {
				t.Fatal(err)
			}
			if registrations > 10*(registrationBurst+seconds*registrationRate) {
				break // time stands still
			}
		}
		if most := registrationBurst + seconds*registrationRate + 1; registrations > most || registrations < registrationBurst {
			t.Errorf("%d registrations in %d seconds, want up to %d", registrations, seconds, most)
		}
	})
}

func TestRegistrationsAreKeptOverARestart(t *testing.T) {
	first, directory := serve(t)
	if err := first.Register(Entry{Endpoint: Endpoint{Name: "udev", Address: "/run/udev.sock"}}); err != nil {
		t.Fatal(err)
	}
	if err := first.Register(Entry{Endpoint: Endpoint{Name: "onvif", Network: true, Address: "10.0.0.7:1"}, Shared: true}); err != nil {
		t.Fatal(err)
	}
	second := serveIn(t, directory)                                             // takes the socket's place
	if known := second.Snapshot(); len(known) != 1 || known[0].Name != "udev" { // the address may be somebody else's by now
		t.Errorf("the handlers are %+v, want the one on a Unix socket", known)
	}
	if err := register(t, directory, &protocol.RegisterDiscoveryHandlerRequest{Name: "new", Endpoint: "/run/new.sock"}); err != nil {
		t.Fatal(err)
	}
	if len(second.Endpoints("new")) != 1 {
		t.Error("the registration did not reach the second registry")
	}
	if err := os.WriteFile(filepath.Join(directory, storeFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := New(directory, anywhere, slog.New(slog.DiscardHandler)); len(third.Snapshot()) != 0 {
		t.Error("a damaged file produced handlers")
	}
}

func TestAnOfflineHandlerIsForgotten(t *testing.T) {
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		registry := New(directory, anywhere, slog.New(slog.DiscardHandler))
		var notified []string
		registry.Subscribe(func(endpoint Endpoint, known bool) {
			notified = append(notified, map[bool]string{false: "", true: "known "}[known]+endpoint.Name)
		})
		entry := Entry{Endpoint: Endpoint{Name: "udev", Address: "/run/udev.sock"}}
		registry.Register(entry)
		registry.Register(entry)
		if !slices.Equal(notified, []string{"udev", "known udev"}) {
			t.Fatalf("notified of %v, want each registration", notified)
		}
		go registry.Run(t.Context())
		ended := registry.Opened(entry.Endpoint)
		time.Sleep(time.Hour)
		ended(true)
		time.Sleep(ForgetAfter - time.Second)
		synctest.Wait()
		if known := registry.Snapshot(); len(known) != 1 || known[0].State != Offline {
			t.Fatalf("before the limit the endpoints are %v", known)
		}
		time.Sleep(time.Second + checkInterval)
		synctest.Wait()
		if known := registry.Snapshot(); len(known) != 0 || len(notified) != 3 {
			t.Errorf("the endpoints are %v, notified of %v; want it forgotten and notified", known, notified)
		}
	})
}

// A handler that no Configuration uses, and whose Pod is gone, is forgotten too.
// Otherwise, Pods with changing addresses would fill the registry.
func TestAnUnusedHandlerIsForgotten(t *testing.T) {
	directory, err := os.MkdirTemp("", "akri") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	alive := filepath.Join(directory, "alive.sock")
	listener, err := net.Listen("unix", alive)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	synctest.Test(t, func(t *testing.T) {
		registry := New(directory, anywhere, slog.New(slog.DiscardHandler))
		for _, address := range []string{alive, filepath.Join(directory, "dead.sock")} {
			if err := registry.Register(Entry{Endpoint: Endpoint{Name: "udev", Address: address}}); err != nil {
				t.Fatal(err)
			}
		}
		go registry.Run(t.Context())
		go registry.Probe(t.Context())
		time.Sleep(ForgetAfter + 2*probeInterval)
		synctest.Wait()
		if known := registry.Snapshot(); len(known) != 1 || known[0].Address != alive || known[0].State != Waiting {
			t.Errorf("the endpoints are %+v, want the one that listens, Waiting", known)
		}
	})
}

// A stream that was opened before its endpoint was forgotten does not count for the
// endpoint that registers afterwards.
func TestAStreamOfAForgottenHandlerIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := New(t.TempDir(), anywhere, slog.New(slog.DiscardHandler))
		entry := Entry{Endpoint: Endpoint{Name: "udev", Address: "/run/udev.sock"}}
		ended := registry.Opened(entry.Endpoint) // not known
		if err := registry.Register(entry); err != nil {
			t.Fatal(err)
		}
		ended(false)
		if streams := registry.records[entry.Endpoint].streams; streams != 0 {
			t.Errorf("%d streams are open, want 0", streams)
		}
		registry.Failed(entry.Endpoint)
		if state := registry.Snapshot()[0].State; state != Offline {
			t.Errorf("the endpoint is %s, want Offline", state)
		}
	})
}

func TestConnectErrors(t *testing.T) {
	directory := t.TempDir()
	registry := New(directory, anywhere, slog.New(slog.DiscardHandler))
	_, err := registry.Connect(t.Context(), Endpoint{Name: "udev", Address: directory + "/udev.sock"})
	if err == nil || !strings.Contains(err.Error(), "udev@") || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no socket: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = registry.Connect(t.Context(), Endpoint{Name: "onvif", Network: true, Address: listener.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("no listener: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = registry.Connect(ended, Endpoint{Name: "onvif", Network: true, Address: listener.Addr().String()}); err == nil {
		t.Error("connected with a cancelled context")
	}
}

// TestStored checks which endpoints the next agent knows from the start.
func TestStored(t *testing.T) {
	dir := t.TempDir()
	r := New(dir, anywhere, slog.New(slog.DiscardHandler), Entry{Endpoint: Endpoint{Name: "configured", Network: true, Address: "h:1"}})
	for _, entry := range []Entry{
		{Endpoint: Endpoint{Name: "own", Address: dir + "/own" + EmbeddedSuffix}},
		{Endpoint: Endpoint{Name: "other", Address: "/other.sock"}, Shared: true},
	} {
		if err := r.Register(entry); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, each := range New(dir, anywhere, slog.New(slog.DiscardHandler)).Snapshot() {
		names = append(names, each.String())
	}
	if got := strings.Join(names, " "); got != "other@/other.sock" {
		t.Errorf("the next agent knows %s", got)
	}
}

// TestSocketRemoved checks that handlers can register after somebody has removed the
// agent's socket, and that the agent ends if it cannot create another one, because it has
// mounted a directory that was deleted.
func TestSocketRemoved(t *testing.T) {
	directory := t.TempDir()
	r := New(directory, anywhere, slog.New(slog.DiscardHandler))
	r.interval = time.Millisecond
	listener, err := Listen(directory)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, listener) }()
	socket := filepath.Join(directory, protocol.RegistrationSocket)
	for range 2 {
		if err := os.Remove(socket); err != nil {
			t.Error(err)
		}
		for ctx.Err() == nil {
			if _, err := os.Lstat(socket); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := register(t, directory, &protocol.RegisterDiscoveryHandlerRequest{Name: "udev", Endpoint: "/udev.sock"}); err != nil {
			t.Errorf("register at the new socket: %v", err)
		}
	}
	if err := os.Rename(directory, directory+"-deleted"); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("serving without a directory ended with %v", err)
	}
}
