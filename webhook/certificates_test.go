package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v0 "akri.sh/akri/api/v0"
)

// The certificate is made, told to the API server and renewed with the rights that
// config/webhook gives, which are to one Secret and one registration.
func TestCertificates(t *testing.T) {
	w := enter(t)
	w.install("webhook/rbac.yaml", nil)
	w.install("webhook/secret.yaml", nil)
	w.install("webhook/registration.yaml", func(object *unstructured.Unstructured) {
		hook := object.Object["webhooks"].([]any)[0].(map[string]any)
		hook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.namespace}}
	})
	address := freeAddress(t)
	ready := w.serveManaged(address)
	w.eventually("it is ready", func() string {
		if err := ready(nil); err != nil {
			return err.Error()
		}
		return ""
	})
	first := w.authority()
	if answer, err := call(address, first); err != nil || !strings.Contains(answer, `"allowed":true`) {
		t.Fatalf("the API server would be answered by %s, %v", answer, err)
	}
	if _, err := call(address, nil); err == nil {
		t.Error("a certificate of nobody is taken")
	}

	// It is renewed, authority and all, when it is lost; without a restart.
	secrets := w.kubernetes().CoreV1().Secrets("akri-system")
	if _, err := secrets.Patch(t.Context(), "akri-webhook", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("a new certificate", func() string {
		second := w.authority()
		if bytes.Equal(first, second) {
			return "the API server knows the old authority"
		}
		if _, err := call(address, second); err != nil {
			return err.Error()
		}
		return ""
	})
}

// serveManaged runs a manager that does nothing but serve the webhook.
func (w *world) serveManaged(address string) healthz.Checker {
	w.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: controllerAccount, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		w.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard()})
	if err != nil {
		w.Fatal(err)
	}
	chain, err := NewChain(w.options)
	if err != nil {
		w.Fatal(err)
	}
	ready, err := Serve(mgr, ServerOptions{
		Address: address, Folder: filepath.Join(w.TempDir(), "certificate"),
		Secret: types.NamespacedName{Namespace: "akri-system", Name: "akri-webhook"},
	}, chain)
	if err != nil {
		w.Fatal(err)
	}
	if ready(nil) == nil {
		w.Error("ready before there is a certificate")
	}
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the manager ended with: %v", err)
		}
	})
	return ready
}

// authority is what the API server knows of the webhook's certificate.
func (w *world) authority() []byte {
	w.Helper()
	found, err := w.kubernetes().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.Context(), RegistrationName, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return found.Webhooks[0].ClientConfig.CABundle
}

// call asks as the API server does.
func call(address string, authority []byte) (string, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "akri-webhook.akri-system.svc"}, DisableKeepAlives: true},
	}
	body := question(`{"apiVersion":"akri.sh/v0","kind":"Configuration","metadata":{"name":"called"},"spec":{"discoveryHandler":{"name":"h"}}}`)
	response, err := client.Post("https://"+address+Path, "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAddressOfTheWebhook(t *testing.T) {
	for _, address := range []string{"", "9443", ":x", ":0", ":70000"} {
		if _, err := Serve(nil, ServerOptions{Address: address}, nil); err == nil {
			t.Errorf("%q is taken", address)
		} else if !strings.Contains(fmt.Sprint(err), "address of the webhook") {
			t.Errorf("%q is refused by %v", address, err)
		}
	}
}
