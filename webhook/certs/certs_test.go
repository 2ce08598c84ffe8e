package certs

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

func TestRestrictLists(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, method, path, selector string
	}{
		"Secrets": {"only our Secret is listed", http.MethodGet, "/api/v1/namespaces/ours/secrets", "metadata.name=cert"},
		"Registrations": {"only our registration is listed", http.MethodGet, "/apis/x/v1/validatingwebhookconfigurations",
			"metadata.name=" + RegistrationName},
		"Update":    {"an update names its object", http.MethodPut, "/api/v1/namespaces/ours/secrets/cert", ""},
		"OtherKind": {"other kinds are not restricted", http.MethodGet, "/api/v1/namespaces/ours/pods", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			config := &rest.Config{Transport: promhttp.RoundTripperFunc(func(request *http.Request) (*http.Response, error) {
				got = request.URL.Query().Get("fieldSelector")
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
			})}
			transport, err := rest.TransportFor(restrictLists(config, types.NamespacedName{Namespace: "ours", Name: "cert"}))
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "http://localhost"+tc.path+"?watch=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got != tc.selector {
				t.Errorf("%s: field selector %q, want %q", tc.reason, got, tc.selector)
			}
		})
	}
}

// pair returns a certificate and its key, in PEM.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("akri-webhook.akri-system.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func TestState(t *testing.T) {
	state := newState()
	serves := func(want []byte) {
		t.Helper()
		got, err := state.GetCertificate(nil)
		switch block, _ := pem.Decode(want); {
		case want == nil && err == nil:
			t.Error("there is a certificate, want none")
		case want != nil && (err != nil || !bytes.Equal(got.Certificate[0], block.Bytes)):
			t.Errorf("it serves with another certificate (%v)", err)
		}
	}
	update := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	registration := func(ca string) *admissionregistrationv1.ValidatingWebhookConfiguration {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: RegistrationName},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					CABundle: []byte(ca),
					Service:  &admissionregistrationv1.ServiceReference{Path: new(newPath(time.Now()))},
				},
			}},
		}
	}
	first, key := pair(t)
	secret := &corev1.Secret{Data: map[string][]byte{KeyFile: key}}
	update(state.updateSecret(secret))
	serves(nil)
	if state.Ready() == nil {
		t.Error("ready without a certificate")
	}
	secret.Data[CertFile], secret.Data[caKey] = first, []byte("ca")
	update(state.updateSecret(secret))
	serves(first)
	update(state.updateRegistration(registration("another CA")))
	if state.Ready() == nil {
		t.Error("ready although the API server trusts another CA")
	}
	update(state.updateRegistration(registration("ca")))
	if err := state.Ready(); err != nil {
		t.Errorf("not ready although the API server trusts the CA: %v", err)
	}
	renewed, key := pair(t)
	if state.updateSecret(&corev1.Secret{Data: map[string][]byte{CertFile: renewed, KeyFile: secret.Data[KeyFile]}}) == nil {
		t.Error("a certificate with the key of another was accepted")
	}
	serves(first)
	update(state.updateSecret(&corev1.Secret{Data: map[string][]byte{CertFile: renewed, KeyFile: key}}))
	serves(renewed)
}
