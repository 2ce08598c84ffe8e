package webhook

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/webhook/certs"
)

// background outlives a test. Cleanups use it.
var background = context.Background()

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// world is a namespace on a real API server whose Configurations are reviewed by
// the webhook in this process.
type world struct {
	testing.TB
	*apitest.World
	// options of the Chain. A test may change them before it calls guard.
	options Options
}

func newWorld(t testing.TB) *world {
	t.Helper()
	on := apitest.NewWorld(t, corev1.AddToScheme, rbacv1.AddToScheme)
	w := &world{TB: t, World: on, options: optionsFor(t, on.Config)}
	t.Cleanup(func() { // otherwise other tests could not use the names
		err := w.as("").api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).DeleteCollection(background, metav1.DeleteOptions{},
			metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return w
}

// optionsFor returns options that connect to the API server with config.
func optionsFor(t testing.TB, config *rest.Config) Options {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(v0.AddToScheme(scheme))
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := kinds.New(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Config: config, Live: reader, Mapper: mapper,
		Details: map[string]func(string) error{"debugEcho": builtin.Validators["debugEcho"]},
	}
}

// seeing makes the webhook show its requests to the API server.
func (w *world) seeing(see func(*http.Request)) {
	w.Helper()
	config := rest.CopyConfig(w.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			see(request)
			return next.RoundTrip(request)
		})
	})
	w.options = optionsFor(w, config)
}

// guard makes the API server call the webhook for the namespace.
func (w *world) guard() {
	w.Helper()
	chain, err := NewChain(w.options)
	if err != nil {
		w.Fatal(err)
	}
	w.serve(Handler(chain))
}

// serve makes the API server call a handler for the namespace, with the registration
// of config/webhook. It returns a function that removes it.
func (w *world) serve(handler http.Handler) (remove func()) {
	w.Helper()
	// The API server takes a while to see a registration: the first request is a
	// probe, which does not reach the handler.
	var asked atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked.Swap(true) {
			handler.ServeHTTP(rw, r)
			return
		}
		denyAll("a probe")(rw, r)
	}))
	w.Cleanup(server.Close)
	hook := w.registration()
	url := server.URL + certs.Path
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority(server)}
	remove = w.register(hook)
	w.Eventually("the webhook is called", func() string {
		err := w.as("").dryRun(configuration("", ""))
		if err == nil || !asked.Load() {
			return fmt.Sprintf("it is not called: %v", err)
		}
		return ""
	})
	return remove
}

// registration returns the webhook as config/webhook registers it.
func (w *world) registration() admissionregistrationv1.ValidatingWebhook {
	w.Helper()
	var registration admissionregistrationv1.ValidatingWebhookConfiguration
	content := w.manifest("webhook/registration.yaml")[0].Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &registration); err != nil {
		w.Fatal(err)
	}
	return registration.Webhooks[0]
}

func (w *world) register(hook admissionregistrationv1.ValidatingWebhook) (remove func()) {
	w.Helper()
	none := admissionregistrationv1.SideEffectClassNone
	if hook.SideEffects == nil {
		hook.SideEffects = &none
	}
	hook.AdmissionReviewVersions = []string{"v1"}
	if hook.NamespaceSelector == nil {
		hook.NamespaceSelector = &metav1.LabelSelector{}
	}
	hook.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": w.Namespace}
	hooks := w.kubernetes().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(hook.Name) + "-" + w.Namespace},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
	}
	if _, err := hooks.Create(w.Context(), object, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	remove = sync.OnceFunc(func() {
		if err := hooks.Delete(background, object.Name, metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(remove)
	return remove
}

func (w *world) kubernetes() *kubernetes.Clientset {
	w.Helper()
	clients, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		w.Fatal(err)
	}
	return clients
}

// as returns a client of a user that collects warnings. The user "" is an
// administrator.
func (w *world) as(user string, groups ...string) *person {
	w.Helper()
	p := &person{world: w, warnings: &warningLog{}}
	config := rest.CopyConfig(w.Config)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	}
	config.WarningHandler = p.warnings
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	p.api = api
	return p
}

// person writes Configurations.
type person struct {
	*world
	api      dynamic.Interface
	warnings *warningLog
}

// warningLog collects warnings.
type warningLog struct {
	mu    sync.Mutex
	lines []string
}

func (w *warningLog) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, text)
}

// take returns the warnings since the last call.
func (w *warningLog) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.lines, "\n")
	w.lines = nil
	return text
}

// apply applies a Configuration from YAML; the error is the API server's.
func (p *person) apply(text string) error {
	p.Helper()
	object := decode(p, text)
	object.SetNamespace(p.Namespace)
	_, err := p.api.Resource(v0.ConfigurationResource).Namespace(p.Namespace).
		Apply(background, object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

// dryRun creates a Configuration from YAML, without storing it. The error is the API
// server's.
func (p *person) dryRun(text string) error {
	p.Helper()
	_, err := p.api.Resource(v0.ConfigurationResource).Namespace(p.Namespace).
		Create(p.Context(), decode(p, text), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// make creates an object of any kind.
func (p *person) make(resource schema.GroupVersionResource, text string) *unstructured.Unstructured {
	p.Helper()
	object := decode(p, text)
	created, err := p.api.Resource(resource).Namespace(p.Namespace).Create(p.Context(), object, metav1.CreateOptions{})
	if err != nil {
		p.Fatalf("%v\n%s", err, text)
	}
	return created
}

func decode(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

// configuration returns a Configuration with broker resources in YAML's flow style.
func configuration(instance, group string) string {
	return `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  instanceBrokerResources: [` + instance + `]
  configurationBrokerResources: [` + group + `]
`
}

func userInfo(name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: name, Groups: []string{"system:authenticated"}}
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	quotas     = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
)

// otherWebhook returns another webhook for a resource of the namespace.
func (w *world) otherWebhook(resource string, handler http.HandlerFunc) admissionregistrationv1.ValidatingWebhook {
	w.Helper()
	server := httptest.NewTLSServer(handler)
	w.Cleanup(func() { go server.Close() }) // a handler may still be running
	return admissionregistrationv1.ValidatingWebhook{
		Name:         "third.party.example",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority(server)},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}},
	}
}

func authority(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// denyAll denies every request.
func denyAll(why string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var question admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		question.Response = &admissionv1.AdmissionResponse{UID: question.Request.UID, Result: &metav1.Status{Message: why}}
		question.Request = nil
		_ = json.NewEncoder(rw).Encode(question)
	}
}
