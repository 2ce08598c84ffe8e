package apitest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

// Timeout is how long Eventually waits. It only bounds failures.
const Timeout = time.Minute

// World is a namespace for one test on the API server, with a client. Its methods
// fail the test.
type World struct {
	client.Client
	T         testing.TB
	Config    *rest.Config
	Namespace string
}

// NewWorld starts the API server if necessary and creates a namespace. The client
// knows Akri's kinds and those that add registers.
func NewWorld(t testing.TB, add ...func(*runtime.Scheme) error) *World {
	t.Helper()
	config := Start(t)
	scheme := runtime.NewScheme()
	for _, register := range append(add, v0.AddToScheme) {
		if err := register(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &World{Client: api, T: t, Config: config, Namespace: Namespace(t, config)}
}

// In returns the world for a subtest, to which failures then belong.
func (w *World) In(t testing.TB) *World {
	sub := *w
	sub.T = t
	return &sub
}

// Key returns the key of an object in the world's namespace.
func (w *World) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: name}
}

// Meta returns the metadata of an object in the world's namespace.
func (w *World) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}

// Read gets an object of the world's namespace.
func (w *World) Read(name string, object client.Object) {
	w.T.Helper()
	if err := w.Get(w.T.Context(), w.Key(name), object); err != nil {
		w.T.Fatal(err)
	}
}

// Apply applies the objects of a YAML text. Namespaced objects go to the world's
// namespace.
func (w *World) Apply(text string) {
	w.T.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.T.Fatalf("%v\n%s", err, document)
		}
		namespaced, err := w.IsObjectNamespaced(&object)
		if err != nil {
			w.T.Fatalf("%v\n%s", err, document)
		}
		if namespaced {
			object.SetNamespace(w.Namespace)
		}
		apply := client.ApplyConfigurationFromUnstructured(&object)
		if err := w.Client.Apply(w.T.Context(), apply, client.FieldOwner("test"), client.ForceOwnership); err != nil {
			w.T.Fatalf("%v\n%s", err, document)
		}
	}
}

// Instance creates an Instance as an agent does.
func (w *World) Instance(configuration, name string, properties map[string]string) *v0.Instance {
	w.T.Helper()
	var owner v0.Configuration
	w.Read(configuration, &owner)
	instance := &v0.Instance{
		ObjectMeta: w.Meta(name),
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration, CDIName: v0.CDIName(configuration, name), Capacity: 1,
			Nodes: []string{"node-a"}, BrokerProperties: properties,
		},
	}
	instance.Labels = map[string]string{v0.LabelConfiguration: configuration}
	instance.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&owner, v0.ConfigurationKind)}
	if err := w.Create(w.T.Context(), instance); err != nil {
		w.T.Fatal(err)
	}
	return instance
}

// Eventually is the function Eventually for the world's test.
func (w *World) Eventually(what string, check func() string) {
	w.T.Helper()
	Eventually(w.T, what, check)
}

// StartManager starts a manager with the controllers that setup adds. It runs until
// stop is called, at the latest until the test ends. A nil config means w.Config; the
// metrics server and the log are off.
func (w *World) StartManager(
	config *rest.Config, options manager.Options, setup func(context.Context, manager.Manager) error,
) (stop func()) {
	w.T.Helper()
	if config == nil {
		config = w.Config
	}
	options.Metrics, options.Logger = server.Options{BindAddress: "0"}, logr.Discard()
	mgr, err := ctrl.NewManager(rest.CopyConfig(config), options)
	if err != nil {
		w.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := setup(ctx, mgr); err != nil {
		cancel()
		w.T.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.T.Errorf("the manager stopped: %v", err)
		}
	}
	w.T.Cleanup(stop)
	return stop
}

// EventuallyTrue is Eventually for a condition that has nothing to say while it does not hold.
func EventuallyTrue(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Eventually(t, what, func() string {
		if holds() {
			return ""
		}
		return "it does not hold"
	})
}

// RoundTripper is a function that sends a request.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// pollInterval is how long a test waits between two looks. Most are requests, which load the
// API server that the test waits for.
const pollInterval = 25 * time.Millisecond

// Eventually calls check until it returns "". If that takes longer than Timeout, the
// test fails with the last result.
func Eventually(t testing.TB, what string, check func() string) {
	t.Helper()
	for deadline := time.Now().Add(Timeout); ; time.Sleep(pollInterval) {
		failure := check()
		if failure == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v: %s", what, Timeout, failure)
		}
	}
}
