package certs

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"testing"

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
	state := &State{}
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
	registration := func(ca, path string) *admissionregistrationv1.ValidatingWebhookConfiguration {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: RegistrationName},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					CABundle: []byte(ca),
					Service:  &admissionregistrationv1.ServiceReference{Path: new(path)},
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
	secret.Data[CertFile], secret.Data[caCertificate], secret.Data[caPrivateKey] = first, []byte("ca"), []byte("key")
	update(state.updateSecret(secret))
	serves(first)
	path := pathOf([]byte("key"))
	state.updateRegistration(registration("another CA", path))
	if state.Ready() == nil {
		t.Error("ready although the API server trusts another CA")
	}
	state.updateRegistration(registration("ca", Path))
	if state.Ready() == nil {
		t.Error("ready although the API server calls another path")
	}
	state.updateRegistration(registration("ca", path))
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

// Only the path that follows from the CA's private key is served, and none without one.
func TestServed(t *testing.T) {
	certificate, key := pair(t)
	state := &State{}
	secret := &corev1.Secret{Data: map[string][]byte{CertFile: certificate, KeyFile: key}}
	for _, private := range []string{"", "one", "another"} {
		secret.Data[caPrivateKey] = []byte(private)
		if err := state.updateSecret(secret); err != nil {
			t.Fatal(err)
		}
		for _, of := range []string{"", "one", "another"} {
			if path := pathOf([]byte(of)); state.Served(path) != (of == private && of != "") {
				t.Errorf("with the key %q, %q is served: %t", private, path, state.Served(path))
			}
		}
		for _, path := range []string{"", "/", Path, Path + "/", pathOf([]byte(private)) + "x"} {
			if state.Served(path) {
				t.Errorf("with the key %q, %q is served", private, path)
			}
		}
	}
}
