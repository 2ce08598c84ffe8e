package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"akri.sh/akri/webhook/certs"
)

// ServerOptions configure where the webhook is served, and with which certificate.
type ServerOptions struct {
	// Address to listen on, for example ":9443".
	Address string
	// Dir holds tls.crt and tls.key, which are reloaded when they change.
	Dir string
	// Secret stores the certificate that is created for the webhook. The Service
	// is in the same namespace. If empty, someone else must put a certificate
	// into Dir and its CA into the webhook's registration.
	Secret types.NamespacedName
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
	written, trusted := closedChannel(), func() error { return nil }
	if options.Secret.Name != "" {
		files, err := certs.Manage(mgr, options.Secret, options.Dir)
		if err != nil {
			return nil, err
		}
		written, trusted = files.Written(), files.Ready
	}
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: port, CertDir: options.Dir, CertName: certs.CertFile, KeyName: certs.KeyFile,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) {
			config.MinVersion = tls.VersionTLS13
			config.NextProtos = []string{"http/1.1"} // an HTTP/2 client can request more than it waits for
		}},
	})
	server.Register(Path, Handler(chain))
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-written: // the server reads the files when it starts
			return server.Start(ctx)
		case <-ctx.Done():
			return nil
		}
	}))
	if err != nil {
		return nil, fmt.Errorf("add the webhook: %w", err)
	}
	return func(request *http.Request) error {
		if err := trusted(); err != nil {
			return err
		}
		return server.StartedChecker()(request)
	}, nil
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
