package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
)

func TestHandlersOnTheNetworkNeedPermission(t *testing.T) {
	some := Network{Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00::/64")}}
	for name, tc := range map[string]struct {
		network Network
		address string
		refused string // part of the message; empty: permitted
	}{
		"by default":         {Network{}, "10.244.3.7:1", "--allow-network-handlers=CIDR"},
		"in the range":       {some, "10.244.3.7:1", ""},
		"in the IPv6 range":  {some, "[fd00::7]:1", ""},
		"a mapped address":   {some, "[::ffff:10.244.3.7]:1", ""},
		"outside":            {some, "10.0.0.7:1", "add its range to --allow-network-handlers"},
		"a name":             {some, "example.com:1", "want an IP address"},
		"certificates":       {Network{CAFile: "ca"}, "example.com:1", ""},
		"both, outside":      {Network{Addresses: some.Addresses, CAFile: "ca"}, "10.0.0.7:1", "not permitted"},
		"both, in the range": {Network{Addresses: some.Addresses, CAFile: "ca"}, "10.244.0.7:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			registry := New(t.TempDir(), tc.network, slog.New(slog.DiscardHandler))
			service := newRegistrationService(registry)
			_, err := service.RegisterDiscoveryHandler(t.Context(), &protocol.RegisterDiscoveryHandlerRequest{
				Name: "onvif", Endpoint: "http://" + tc.address, EndpointType: protocol.RegisterDiscoveryHandlerRequest_NETWORK,
			})
			if tc.refused == "" {
				if err != nil || len(registry.Endpoints("onvif")) != 1 {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), tc.refused) || len(registry.Endpoints("onvif")) != 0 {
				t.Errorf("got %v, want PermissionDenied with %q", err, tc.refused)
			}
			if reason := registry.Refusal("onvif"); !strings.Contains(reason, tc.refused) {
				t.Errorf("the reason for Configurations is %q, want %q", reason, tc.refused)
			}
		})
	}
}

// A refusal is remembered until the handler registers. It is reported once, however often
// the handler tries, and costs little memory, whatever it sends.
func TestRefusals(t *testing.T) {
	registry := New(t.TempDir(), Network{}, slog.New(slog.DiscardHandler))
	service := newRegistrationService(registry)
	service.pace = rate.NewLimiter(rate.Inf, 1)
	var reported []string
	registry.Subscribe(func(endpoint Endpoint, _ bool) { reported = append(reported, endpoint.Name) })
	register := func(name, endpoint string) {
		_, err := service.RegisterDiscoveryHandler(t.Context(), &protocol.RegisterDiscoveryHandlerRequest{Name: name, Endpoint: endpoint})
		if (err == nil) != strings.HasPrefix(endpoint, "/") {
			t.Errorf("%s at %s: %v", name, endpoint, err)
		}
	}
	for range 3 {
		register("onvif", "relative.sock")
	}
	reason := registry.Refusal("onvif")
	for i := range 10 {
		register("onvif", fmt.Sprint("varies", i))
	}
	if now := registry.Refusal("onvif"); now != reason {
		t.Errorf("soon after %q, the reason is %q", reason, now)
	}
	registry.refusals["onvif"] = refusal{reason, time.Now().Add(-refusalInterval)}
	register("onvif", strings.Repeat("x", 1<<20))
	reason = registry.Refusal("onvif")
	if len(reason) > maxRefusalLength || !strings.HasPrefix(reason, "the discovery handler may not register: ") {
		t.Errorf("the reason is %q", reason)
	}
	register(strings.Repeat("n", maxNameLength+1), "relative.sock")
	if want := []string{"onvif", "onvif"}; !slices.Equal(reported, want) {
		t.Errorf("reported were %q, want %q", reported, want)
	}
	register("onvif", "/run/onvif.sock")
	if reason = registry.Refusal("onvif"); reason != "" {
		t.Errorf("it has registered, and the reason is %q", reason)
	}
	for i := range maxEndpoints + 10 {
		register(fmt.Sprint("x", i), "relative.sock")
	}
	if len(registry.refusals) != maxEndpoints {
		t.Errorf("%d refusals are kept, want %d", len(registry.refusals), maxEndpoints)
	}

	// They are forgotten when the handlers no longer try, which the kubelet has some do every
	// five minutes.
	reported = nil
	later := registry.refusals["x0"].at.Add(10 * time.Minute)
	if registry.forget(later.Add(-4 * time.Minute)); len(reported) > 0 {
		t.Errorf("forgotten after six minutes were %q", reported)
	}
	registry.refusals["x1"] = refusal{"repeated", later}
	registry.forget(later)
	if registry.forget(later.Add(forgetRefusalAfter - time.Second)); len(registry.refusals) != 1 {
		t.Errorf("%d refusals are left, want that of x1", len(registry.refusals))
	}
	if !slices.Contains(reported, "x0") || slices.Contains(reported, "x1") {
		t.Errorf("reported were %q", reported)
	}
}

// certAuthority signs certificates.
type certAuthority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *certAuthority {
	a := &certAuthority{t: t}
	a.certificate, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *certAuthority) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

// files writes a certificate for a name and its key, and returns the files.
func (a *certAuthority) files(name string) (certFile, keyFile string) {
	certificate, key := a.sign(name, &x509.Certificate{
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write("CERTIFICATE", certificate.Raw), a.write("EC PRIVATE KEY", der)
}

func (a *certAuthority) write(kind string, der []byte) string {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), "pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// serveTLS runs a gRPC server that requires certificates of the authority.
func serveTLS(t *testing.T, of *certAuthority, name string) (address string) {
	t.Helper()
	own, err := tls.LoadX509KeyPair(of.files(name))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(of.certificate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	protocol.RegisterDiscoveryHandlerServer(server, protocol.UnimplementedDiscoveryHandlerServer{})
	return listen(t, server, listener)
}

// With a CA, only a server with the handler's certificate gets the request.
func TestTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	certFile, keyFile := ours.files("agent")
	network := Network{CAFile: ours.write("CERTIFICATE", ours.certificate.Raw), CertFile: certFile, KeyFile: keyFile}
	if err := network.Validate(); err != nil {
		t.Fatal(err)
	}
	registry := New(t.TempDir(), network, slog.New(slog.DiscardHandler))
	for name, tc := range map[string]struct{ address, handler, refused string }{
		"the handler":       {serveTLS(t, ours, "onvif"), "onvif", ""},
		"upper case":        {serveTLS(t, ours, "debugEcho"), "debugEcho", ""},
		"another handler":   {serveTLS(t, ours, "udev"), "onvif", "not onvif"},
		"another authority": {serveTLS(t, others, "onvif"), "onvif", "unknown authority"},
		"plaintext":         {servePlain(t), "onvif", "onvif@"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			connection, err := registry.Connect(ctx, Endpoint{Name: tc.handler, Network: true, Address: tc.address})
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want an error with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			call, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, &protocol.DiscoverRequest{})
			if err == nil {
				_, err = call.Recv()
			}
			if status.Code(err) != codes.Unimplemented { // the answer of the server
				t.Errorf("the call returns %v", err)
			}
		})
	}
}

// servePlain runs a gRPC server without TLS.
func servePlain(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	return listen(t, server, listener)
}

func TestNetworkFiles(t *testing.T) {
	for name, network := range map[string]Network{
		"no CA":             {CertFile: "c", KeyFile: "k"},
		"no key":            {CAFile: "ca", CertFile: "c"},
		"a missing CA":      {CAFile: "/nowhere"},
		"not a certificate": {CAFile: "network_test.go"},
	} {
		if err := network.Validate(); err == nil || !strings.Contains(err.Error(), "--network-handlers-") {
			t.Errorf("%s: got %v, want an error that names the flag", name, err)
		}
	}
}

// listen runs a server until the end of the test, and returns its address.
func listen(t *testing.T, server *grpc.Server, listener net.Listener) (address string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return listener.Addr().String()
}
