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
)

// ServerOptions say where the webhook is served.
type ServerOptions struct {
	// Address to listen on, as in ":9443".
	Address string
	// Folder of tls.crt and tls.key, which are read again when they change.
	Folder string
	// Secret in which the certificate is kept that is made for the webhook; its
	// namespace is that of the Service. Empty: somebody else puts a certificate
	// into Folder and its authority into the webhook's registration.
	Secret types.NamespacedName
}

// Serve adds the webhook to a manager. It is served by every replica. The check
// that is returned says no until the API server can be answered.
func Serve(mgr manager.Manager, options ServerOptions, chain *Chain) (healthz.Checker, error) {
	host, portText, err := net.SplitHostPort(options.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the webhook: %w: write HOST:PORT or :PORT", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("address of the webhook: port %q is no number from 1 to 65535", portText)
	}
	written, certified := closed(), func() error { return nil }
	if options.Secret.Name != "" {
		mirror, err := selfManaged(mgr, options.Secret, options.Folder)
		if err != nil {
			return nil, err
		}
		written, certified = mirror.written, mirror.ready
	}
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: port, CertDir: options.Folder, CertName: certificateFile, KeyName: keyFile,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) {
			config.MinVersion = tls.VersionTLS13
			config.NextProtos = []string{"http/1.1"} // HTTP/2 lets one client ask for more than it waits for
		}},
	})
	server.Register(Path, Handler(chain))
	err = mgr.Add(everywhere(func(ctx context.Context) error {
		select {
		case <-written: // it reads its files when it starts
			return server.Start(ctx)
		case <-ctx.Done():
			return nil
		}
	}))
	if err != nil {
		return nil, fmt.Errorf("add the webhook: %w", err)
	}
	return func(request *http.Request) error {
		if err := certified(); err != nil {
			return err
		}
		return server.StartedChecker()(request)
	}, nil
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
