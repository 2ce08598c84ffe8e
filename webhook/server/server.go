package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"akri.sh/akri/webhook/certs"
)

// Limits of a connection. A response takes as long as the API server waits.
const (
	headerTimeout   = 5 * time.Second  // also of the TLS handshake
	requestTimeout  = 10 * time.Second // until a handler sets another deadline
	responseTimeout = 45 * time.Second
	idleTimeout     = 90 * time.Second
	shutdownTimeout = 30 * time.Second
	maxHeaderBytes  = 16 << 10
)

// Options configure where the webhook is served, and with which certificate.
type Options struct {
	// Address to listen on, for example ":9443".
	Address string
	// Dir holds tls.crt and tls.key, which are reloaded when they change. It is read only without a Secret.
	Dir string
	// Secret stores the certificate that is created for the webhook. The Service is in the
	// same namespace. If empty, someone else must put a certificate into Dir and its CA into
	// the webhook's registration; the path is then [certs.Path].
	Secret types.NamespacedName
	// ClientCA is the file with the CA of the API server's client certificate. If empty,
	// no client certificate is required.
	ClientCA string
}

// Server serves the webhook. It collects the metric of its certificate; until there is a
// certificate, there is none.
type Server struct {
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// served reports whether the webhook is served at a path.
	served func(path string) bool
	ready  func() error
	open   *connections
}

// Add adds a server of a handler to a manager, without leader election: every replica serves.
func Add(ctx context.Context, mgr manager.Manager, options Options, handler http.Handler) (*Server, error) {
	_, port, err := net.SplitHostPort(options.Address)
	if number, _ := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		return nil, fmt.Errorf("address of the webhook: %q has no port from 1 to 65535: write HOST:PORT or :PORT", options.Address)
	}
	config, err := tlsConfig(options.ClientCA)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the webhook: %w", err)
	}
	s, err := newServer(mgr, options)
	if err != nil {
		return nil, err
	}
	config.GetCertificate = s.certificate
	err = mgr.Add(&manager.Server{
		Name: "webhook", Server: s.httpServer(handler), Listener: tls.NewListener(listener, config), ShutdownTimeout: new(shutdownTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("add the webhook: %w", err)
	}
	return s, nil
}

// newServer returns a server with its certificate and path, which the manager keeps up to date.
func newServer(mgr manager.Manager, options Options) (*Server, error) {
	if options.Secret.Name != "" {
		state, err := certs.Manage(mgr, options.Secret)
		if err != nil {
			return nil, err
		}
		return &Server{certificate: state.GetCertificate, served: state.Served, ready: state.Ready, open: newConnections()}, nil
	}
	files, err := certwatcher.New(filepath.Join(options.Dir, certs.CertFile), filepath.Join(options.Dir, certs.KeyFile))
	if err != nil {
		return nil, fmt.Errorf("certificate of the webhook: %w", err)
	}
	if err := mgr.Add(files); err != nil {
		return nil, fmt.Errorf("watch the webhook's certificate: %w", err)
	}
	return &Server{
		certificate: files.GetCertificate, served: func(path string) bool { return path == certs.Path },
		ready: func() error { return nil }, open: newConnections(),
	}, nil
}

// Ready returns an error until the API server can call the webhook.
func (s *Server) Ready(*http.Request) error { return s.ready() }

// tlsConfig returns the server's configuration without a certificate.
func tlsConfig(clientCA string) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // an HTTP/2 client can request more than it waits for
	}
	if clientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, fmt.Errorf("CA of the API server's client certificate: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("CA of the API server's client certificate: %s has no certificate in PEM", clientCA)
	}
	return config, nil
}

// httpServer returns a server that admits requests to the webhook's path, and responds to all
// others without reading them.
func (s *Server) httpServer(handler http.Handler) *http.Server {
	// controller-runtime's metrics of webhooks, which are labeled with certs.Path.
	registry := webhook.NewServer(webhook.Options{}) // never started
	registry.Register(certs.Path, handler)
	return &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, httpRequest *http.Request) {
			if !s.served(httpRequest.URL.Path) || httpRequest.Method != http.MethodPost {
				rw.Header().Set("Connection", "close")
				http.NotFound(rw, httpRequest)
				return
			}
			s.open.prove(httpRequest.Context())
			known := httpRequest.Clone(httpRequest.Context())
			known.URL.Path = certs.Path // metrics and logs do not contain the real one
			registry.WebhookMux().ServeHTTP(rw, known)
		}),
		ConnState:         s.open.changed,
		ConnContext:       withConnection,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Who else reaches the port must not fill the log.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

var expirationDescription = prometheus.NewDesc("akri_webhook_certificate_expiration_timestamp_seconds",
	"When the certificate that this replica serves expires, in seconds since 1970.", nil, nil)

// Describe implements [prometheus.Collector].
func (s *Server) Describe(to chan<- *prometheus.Desc) { to <- expirationDescription }

// Collect implements [prometheus.Collector].
func (s *Server) Collect(to chan<- prometheus.Metric) {
	certificate, err := s.certificate(nil)
	if err != nil || certificate == nil || certificate.Leaf == nil {
		return
	}
	to <- prometheus.MustNewConstMetric(expirationDescription, prometheus.GaugeValue, float64(certificate.Leaf.NotAfter.Unix()))
}
