package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret, which are also the names of the files of a certificate from another source.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// caKey is the key of the CA's certificate in the Secret.
const caKey = "ca.crt"

// State is the certificate that the webhook serves with, which CA signed it, which CA the API
// server trusts, and at which paths the webhook is served. It is safe for concurrent use.
type State struct {
	now func() time.Time

	mu          sync.Mutex
	certificate *tls.Certificate // nil until the Secret has one
	// ca signed the certificate; trusted is the CA in the ValidatingWebhookConfiguration.
	ca, trusted []byte
	paths       paths
	// secret and registration are the latest that were read; the Secret only with a
	// certificate.
	secret       *corev1.Secret
	registration *admissionregistrationv1.ValidatingWebhookConfiguration
}

func newState() *State {
	return &State{now: time.Now, paths: paths{retired: map[string]time.Time{}}}
}

// GetCertificate returns the certificate in the Secret. It is for [tls.Config].
func (s *State) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.certificate == nil {
		return nil, errors.New("the webhook has no certificate yet")
	}
	return s.certificate, nil
}

// Served reports whether the webhook is served at a path.
func (s *State) Served(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths.served(path, s.now())
}

// Ready returns an error until there is a certificate, and the API server trusts it and
// knows a path at which the webhook is served.
func (s *State) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.certificate == nil:
		return errors.New("the webhook has no certificate yet")
	case !bytes.Equal(s.ca, s.trusted):
		return errors.New("the API server does not trust the CA of the webhook's certificate yet")
	case !unguessable(s.paths.registered):
		return errors.New("the API server does not know the webhook's path yet")
	}
	return nil
}

// updateSecret reads the certificate. If it does not match its key, the old one is kept.
func (s *State) updateSecret(object any) error {
	secret, ok := object.(*corev1.Secret)
	if !ok || len(secret.Data[CertFile]) == 0 || len(secret.Data[KeyFile]) == 0 {
		return nil // not created yet
	}
	certificate, err := tls.X509KeyPair(secret.Data[CertFile], secret.Data[KeyFile])
	if err != nil {
		return fmt.Errorf("in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificate, s.ca, s.secret = &certificate, secret.Data[caKey], secret
	s.paths.store(string(secret.Data[pathKey]), s.now())
	return nil
}

// updateRegistration records the CA that the API server trusts.
func (s *State) updateRegistration(object any) error {
	registration, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok || registration.Name != RegistrationName || len(registration.Webhooks) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = registration.Webhooks[0].ClientConfig.CABundle
	s.registration = registration
	s.paths.register(pathOf(registration), s.now())
	return nil
}
