package certs

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the Secret, which are also the names of the files of a certificate from another source.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// The keys of the CA in the Secret.
const (
	caCertificate = "ca.crt"
	caPrivateKey  = "ca.key"
)

// Path is where the webhook is served if its certificate is not managed. Otherwise a
// text that cannot be guessed follows.
const Path = "/admission/configurations"

// State is the certificate that the webhook serves with, which CA signed it, which CA the API
// server trusts, and at which path the webhook is served. It is safe for concurrent use.
type State struct {
	mu          sync.Mutex
	certificate *tls.Certificate // nil until the Secret has one
	ca          []byte           // it signed the certificate
	path        string
	// registration is the latest that was read, nil if there is none.
	registration *admissionregistrationv1.ValidatingWebhookConfiguration
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
	return s.path != "" && subtle.ConstantTimeCompare([]byte(s.path), []byte(path)) == 1
}

// Ready returns an error until there is a certificate, and the API server trusts it and
// knows the path at which the webhook is served.
func (s *State) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.certificate == nil:
		return errors.New("the webhook has no certificate yet")
	case s.registration == nil || !bytes.Equal(s.ca, s.registration.Webhooks[0].ClientConfig.CABundle):
		return errors.New("the API server does not trust the CA of the webhook's certificate yet")
	case !registered(s.registration, s.path):
		return errors.New("the API server does not know the webhook's path yet")
	}
	return nil
}

// updateSecret reads the certificate. If it does not match its key, the old one is kept.
func (s *State) updateSecret(secret *corev1.Secret) error {
	if len(secret.Data[CertFile]) == 0 || len(secret.Data[KeyFile]) == 0 {
		return nil // not created yet
	}
	certificate, err := tls.X509KeyPair(secret.Data[CertFile], secret.Data[KeyFile])
	if err != nil {
		return fmt.Errorf("in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificate, s.ca, s.path = &certificate, secret.Data[caCertificate], pathOf(secret.Data[caPrivateKey])
	return nil
}

// updateRegistration records what the API server knows of the webhook.
func (s *State) updateRegistration(registration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if registration.Name != RegistrationName || len(registration.Webhooks) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registration = registration
}

// register writes the path into the registration, unless it is there. Replicas may race: they
// all write the same.
func (s *State) register(ctx context.Context, api client.Writer) error {
	s.mu.Lock()
	if s.path == "" || s.registration == nil || registered(s.registration, s.path) {
		s.mu.Unlock()
		return nil
	}
	changed := s.registration.DeepCopy()
	for i := range changed.Webhooks {
		if service := changed.Webhooks[i].ClientConfig.Service; service != nil {
			service.Path = new(s.path)
		}
	}
	s.mu.Unlock()
	err := api.Update(ctx, changed, client.FieldOwner(fieldOwner))
	if apierrors.IsConflict(err) {
		return nil // somebody else has written it, and the watch will say so
	}
	return err
}

// registered reports whether the API server calls the webhook at a path.
func registered(registration *admissionregistrationv1.ValidatingWebhookConfiguration, path string) bool {
	service := registration.Webhooks[0].ClientConfig.Service
	return service == nil || service.Path != nil && *service.Path == path
}

// pathOf returns a path that only who knows the private key of the CA can compute. So all
// replicas serve at the same path, and it changes with the CA, which the API server has to learn
// at the same time.
func pathOf(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	code := hmac.New(sha256.New, key)
	code.Write([]byte(Path))
	return Path + "/" + hex.EncodeToString(code.Sum(nil)[:16])
}
