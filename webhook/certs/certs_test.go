package certs

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificate")
	files, err := newFiles(dir)
	if err != nil {
		t.Fatal(err)
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
	secret := &corev1.Secret{Data: map[string][]byte{KeyFile: []byte("key")}}
	update(files.updateSecret(secret))
	select {
	case <-files.Written():
		t.Error("files were written from a Secret without a certificate")
	default:
	}
	if files.Ready() == nil {
		t.Error("ready without a certificate")
	}
	secret.Data[CertFile], secret.Data[caKey] = []byte("cert"), []byte("ca")
	update(files.updateSecret(secret))
	<-files.Written()
	for name, want := range map[string]string{CertFile: "cert", KeyFile: "key"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
	update(files.updateRegistration(registration("another CA")))
	if files.Ready() == nil {
		t.Error("ready although the API server trusts another CA")
	}
	update(files.updateRegistration(registration("ca")))
	if err := files.Ready(); err != nil {
		t.Errorf("not ready although the API server trusts the CA: %v", err)
	}
	secret.Data[CertFile] = []byte("renewed")
	update(files.updateSecret(secret))
	if got, err := os.ReadFile(filepath.Join(dir, CertFile)); err != nil || string(got) != "renewed" {
		t.Errorf("after a renewal %s holds %q (%v)", CertFile, got, err)
	}
}
