package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"akri.sh/akri/webhook/certs"
)

// Limits of a connection. A response takes as long as the API server waits.
const (
	headerTimeout   = 5 * time.Second // also of the TLS handshake
	requestTimeout  = 15 * time.Second
	responseTimeout = 45 * time.Second
	idleTimeout     = 90 * time.Second
	shutdownTimeout = 30 * time.Second
	maxHeaderBytes  = 16 << 10
)

// ServerOptions configure where the webhook is served, and with which certificate.
type ServerOptions struct {
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
	// Metrics, if set, learn which certificate is served.
	Metrics *Metrics
}

// Serve adds the webhook to a manager without leader election: every replica
// serves. The returned check fails until the API server can call the webhook.
func Serve(mgr manager.Manager, options ServerOptions, chain *Chain) (healthz.Checker, error) {
	host, portText, err := net.SplitHostPort(options.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the webhook: %w: write HOST:PORT or :PORT", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("address of the webhook: port %q is not a number from 1 to 65535", portText)
	}
	config, err := tlsConfig(options.ClientCA)
	if err != nil {
		return nil, err
	}
	s := &httpsServer{
		address: net.JoinHostPort(host, portText), config: config, served: func(path string) bool { return path == certs.Path },
	}
	trusted := func() error { return nil }
	if options.Secret.Name != "" {
		state, err := certs.Manage(mgr, options.Secret)
		if err != nil {
			return nil, err
		}
		config.GetCertificate, s.served, trusted = state.GetCertificate, state.Served, state.Ready
	} else {
		files, err := certwatcher.New(filepath.Join(options.Dir, certs.CertFile), filepath.Join(options.Dir, certs.KeyFile))
		if err != nil {
			return nil, fmt.Errorf("certificate of the webhook: %w", err)
		}
		if err := mgr.Add(files); err != nil {
			return nil, fmt.Errorf("watch the webhook's certificate: %w", err)
		}
		config.GetCertificate = files.GetCertificate
	}
	if options.Metrics != nil {
		options.Metrics.certificate = config.GetCertificate
	}
	s.handler = instrumented(Handler(chain))
	if err := mgr.Add(s); err != nil {
		return nil, fmt.Errorf("add the webhook: %w", err)
	}
	return func(*http.Request) error {
		if err := trusted(); err != nil {
			return err
		}
		if !s.listening.Load() {
			return errors.New("the webhook does not listen yet")
		}
		return nil
	}, nil
}

// instrumented returns a handler with controller-runtime's metrics of webhooks, which
// are labeled with certs.Path.
func instrumented(handler http.Handler) http.Handler {
	registry := webhook.NewServer(webhook.Options{}) // never started
	registry.Register(certs.Path, handler)
	return registry.WebhookMux()
}

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

// httpsServer serves the webhook until its context is done. It works in every replica.
type httpsServer struct {
	address string
	config  *tls.Config
	// served reports whether the webhook is served at a path.
	served    func(path string) bool
	handler   http.Handler
	listening atomic.Bool
}

// Start implements manager.Runnable.
func (s *httpsServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	s.listening.Store(true)
	return s.serve(ctx, listener)
}

// serve returns when ctx is done and the requests in progress have their responses.
func (s *httpsServer) serve(ctx context.Context, listener net.Listener) error {
	open := newConnections()
	web := &http.Server{
		Handler:           s.gate(open),
		TLSConfig:         s.config,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Who else reaches the port must not fill the log.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	open.attach(web)
	served := make(chan error, 1)
	go func() { served <- web.ServeTLS(listener, "", "") }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		return errors.Join(web.Shutdown(closing), ignoreClosed(<-served))
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// gate admits requests to the webhook's path, and responds to all others without
// reading them.
func (s *httpsServer) gate(open *connections) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, httpRequest *http.Request) {
		if !s.served(httpRequest.URL.Path) || httpRequest.Method != http.MethodPost {
			rw.Header().Set("Connection", "close")
			http.NotFound(rw, httpRequest)
			return
		}
		open.prove(httpRequest.Context())
		known := httpRequest.Clone(httpRequest.Context())
		known.URL.Path = certs.Path // metrics and logs do not contain the real one
		s.handler.ServeHTTP(rw, known)
	})
}
