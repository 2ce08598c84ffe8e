package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/webhook/certs"
	"akri.sh/akri/webhook/server"
)

// Two replicas that start at the same time, without a certificate, agree on one, and make the
// API server trust it, with the permissions that config/webhook gives them: to one Secret and one
// webhook configuration. When it is lost, it is replaced, CA included, without a restart.
func TestTwoReplicas(t *testing.T) {
	w := newWorld(t)
	w.grantController()
	w.installWebhook()
	addresses := []string{freeAddress(t), freeAddress(t)}
	var replicas []*server.Server
	for _, address := range addresses {
		replicas = append(replicas, w.serveManaged(address))
	}
	var old []byte
	for _, when := range []string{"at the start", "after the certificate was lost"} {
		if old != nil {
			w.dropCertificate()
		}
		w.Eventually("a new certificate "+when, func() string {
			if now := w.registered().CABundle; len(now) == 0 || bytes.Equal(now, old) {
				return "the API server does not trust a new CA"
			}
			return ""
		})
		for i, address := range addresses {
			w.becomesReady(replicas[i])
			w.Eventually(fmt.Sprintf("an answer from replica %d %s", i, when), func() string {
				answer, err := w.call(address, w.registered().CABundle)
				switch {
				case err != nil:
					return err.Error()
				case !strings.Contains(answer, `"allowed":true`) || strings.Contains(answer, "warnings"):
					return answer
				}
				return ""
			})
		}
		old = w.registered().CABundle
	}
	w.expires(replicas[0])
	if _, err := w.call(addresses[0], nil); err == nil {
		t.Error("a client accepted a certificate whose CA it does not know")
	}
}

// installWebhook installs the objects of config/webhook that the webhook's process
// needs. The API server calls it for the test's namespace only.
func (w *world) installWebhook() {
	w.Helper()
	w.install("webhook/rbac.yaml", nil)
	w.install("webhook/secret.yaml", nil)
	w.install("webhook/registration.yaml", func(object *unstructured.Unstructured) {
		hook := object.Object["webhooks"].([]any)[0].(map[string]any)
		hook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.Namespace}}
	})
}

// dropCertificate empties the Secret.
func (w *world) dropCertificate() {
	w.Helper()
	secrets := w.kubernetes().CoreV1().Secrets("akri-system")
	if _, err := secrets.Patch(w.Context(), "akri-webhook", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) becomesReady(served *server.Server) {
	w.Helper()
	w.Eventually("the webhook is ready", func() string {
		if err := served.Ready(nil); err != nil {
			return err.Error()
		}
		return ""
	})
}

// expires checks that the metrics know when the certificate expires.
func (w *world) expires(metrics prometheus.Collector) {
	w.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		w.Fatalf("got %v, %v", families, err)
	}
	at := time.Unix(int64(families[0].GetMetric()[0].GetGauge().GetValue()), 0)
	if left := time.Until(at); left < 24*time.Hour || left > 20*365*24*time.Hour {
		w.Errorf("the certificate expires at %v", at)
	}
}

// serveManaged runs a manager that serves the webhook with the webhook's own permissions.
func (w *world) serveManaged(address string) *server.Server {
	w.Helper()
	account := w.actingAs(webhookAccount)
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		w.Fatal(err)
	}
	mgr, err := ctrl.NewManager(account, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		w.Fatal(err)
	}
	mapper, err := kinds.New(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		w.Fatal(err)
	}
	if err := mapper.Watch(w.Context(), mgr.GetCache(), nil); err != nil {
		w.Fatal(err)
	}
	options := optionsFor(w, account)
	options.Mapper = mapper
	chain, err := NewChain(options)
	if err != nil {
		w.Fatal(err)
	}
	served, err := server.Add(w.Context(), mgr, server.Options{
		Address: address,
		Secret:  types.NamespacedName{Namespace: "akri-system", Name: "akri-webhook"},
	}, Handler(chain))
	if err != nil {
		w.Fatal(err)
	}
	if served.Ready(nil) == nil {
		w.Error("ready without a certificate")
	}
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the manager returned: %v", err)
		}
	})
	return served
}

// registered returns how the API server calls the webhook.
func (w *world) registered() admissionregistrationv1.WebhookClientConfig {
	w.Helper()
	found, err := w.kubernetes().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.Context(), certs.RegistrationName,
		metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return found.Webhooks[0].ClientConfig
}

// call sends a review as the API server does, for an administrator.
func (w *world) call(address string, authority []byte) (string, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "akri-webhook.akri-system.svc"},
			DisableKeepAlives: true},
	}
	pod := strings.Replace(aPod, "image: b", `image: b, resources: {limits: {"{{ RESOURCE_NAME }}": 1}}`, 1) // or there is a warning
	object := decode(w, strings.Replace(configuration(pod+","+aConfigMap, ""), "{name: cam}", "{name: called}", 1))
	encoded, err := object.MarshalJSON()
	if err != nil {
		return "", err
	}
	body := strings.NewReplacer(`"namespace":"ns"`, `"namespace":"`+w.Namespace+`"`, `"username":"somebody"`,
		`"username":"admin","groups":["system:masters"]`).
		Replace(question(string(encoded)))
	path := *cmp.Or(w.registered().Service.Path, new("/"))
	response, err := client.Post("https://"+address+path, "application/json", strings.NewReader(body))
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
