package certs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Names of the files, which are also keys of the Secret.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// caKey is the key of the CA's certificate in the Secret.
const caKey = "ca.crt"

// Files are the certificate and the key in a directory. Files records which CA
// signed them, which CA the API server trusts, and at which paths the webhook is
// served. It is safe for concurrent use.
type Files struct {
	dir string
	now func() time.Time
	// written is closed once the files exist.
	written chan struct{}
	once    sync.Once

	mu sync.Mutex
	// ca signed the certificate in the files; trusted is the CA in the
	// ValidatingWebhookConfiguration.
	ca, trusted []byte
	paths       paths
	// secret and registration are the latest that were read; the Secret only with a
	// certificate.
	secret       *corev1.Secret
	registration *admissionregistrationv1.ValidatingWebhookConfiguration
}

func newFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the webhook's certificate: %w", err)
	}
	return &Files{
		dir: dir, now: time.Now, written: make(chan struct{}), paths: paths{retired: map[string]time.Time{}},
	}, nil
}

// Written returns a channel that is closed once the files exist.
func (f *Files) Written() <-chan struct{} { return f.written }

// Served reports whether the webhook is served at a path.
func (f *Files) Served(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths.served(path, f.now())
}

// Ready returns an error until the API server trusts the certificate in the files and
// knows a path at which the webhook is served.
func (f *Files) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.ca) == 0:
		return errors.New("the webhook has no certificate yet")
	case !bytes.Equal(f.ca, f.trusted):
		return errors.New("the API server does not trust the CA of the webhook's certificate yet")
	case !unguessable(f.paths.registered):
		return errors.New("the API server does not know the webhook's path yet")
	}
	return nil
}

// updateSecret writes the files. Each file is replaced atomically, the key first:
// the server loads the pair only when it matches, and keeps the old one until then.
func (f *Files) updateSecret(object any) error {
	secret, ok := object.(*corev1.Secret)
	if !ok || len(secret.Data[CertFile]) == 0 || len(secret.Data[KeyFile]) == 0 {
		return nil // not created yet
	}
	for _, name := range []string{KeyFile, CertFile} {
		file := filepath.Join(f.dir, name)
		if err := os.WriteFile(file+".new", secret.Data[name], 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ca = secret.Data[caKey]
	f.secret = secret
	f.paths.store(string(secret.Data[pathKey]), f.now())
	f.once.Do(func() { close(f.written) })
	return nil
}

// updateRegistration records the CA that the API server trusts.
func (f *Files) updateRegistration(object any) error {
	registration, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok || registration.Name != RegistrationName || len(registration.Webhooks) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusted = registration.Webhooks[0].ClientConfig.CABundle
	f.registration = registration
	f.paths.register(pathOf(registration), f.now())
	return nil
}
