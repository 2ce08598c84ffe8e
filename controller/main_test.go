package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// patience bounds how long a test waits before it fails.
const patience = 20 * time.Second

// cluster is a namespace on a real API server in which a controller works.
type cluster struct {
	client.Client
	t         *testing.T
	config    *rest.Config
	namespace string
	stop      func()
	// writes counts the controller's requests that are not reads.
	writes *atomic.Int64
	// response, if set, may respond to a request of the controller.
	response *atomic.Pointer[func(*http.Request) *http.Response]
}

func start(t *testing.T) *cluster {
	t.Helper()
	return startWith(t, controller.Options{Workers: 4})
}

func startWith(t *testing.T, options controller.Options) *cluster {
	t.Helper()
	config := apitest.Start(t)
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Client: api, t: t, config: config, namespace: apitest.Namespace(t, config), writes: &atomic.Int64{}}
	c.response = &atomic.Pointer[func(*http.Request) *http.Response]{}
	c.runWith(options)
	t.Cleanup(func() { c.stop() })
	return c
}

// in returns the cluster for a subtest, which reports its failures.
func (c *cluster) in(t *testing.T) *cluster {
	sub := *c
	sub.t = t
	return &sub
}

func (c *cluster) run() { c.runWith(controller.Options{Workers: 4}) }

// runWith starts a controller, which lasts until stop is called or the test ends.
func (c *cluster) runWith(options controller.Options) {
	c.t.Helper()
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			// Requests for other tests' namespaces are not counted.
			if request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/"+c.namespace+"/") {
				c.writes.Add(1)
			}
			if respond := c.response.Load(); respond != nil {
				if response := (*respond)(request); response != nil {
					return response, nil
				}
			}
			return next.RoundTrip(request)
		})
	})
	scheme := runtime.NewScheme() // a manager adds to it
	if err := v0.AddToScheme(scheme); err != nil {
		c.t.Fatal(err)
	}
	cacheOptions := controller.CacheOptions()
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:  scheme,
		Cache:   cacheOptions,
		Metrics: server.Options{BindAddress: "0"},
		Logger:  logr.Discard(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := controller.Setup(ctx, mgr, options); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("the controller returned: %v", err)
		}
	}
}

// respond answers requests of the controller from now on. Those for which the function
// returns nil, or all if it is nil, reach the API server.
func (c *cluster) respond(response func(*http.Request) *http.Response) {
	if response == nil {
		c.response.Store(nil)
		return
	}
	c.response.Store(&response)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// apply creates the objects of a YAML text in the test's namespace.
func (c *cluster) apply(text string) {
	c.t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			c.t.Fatalf("%v\n%s", err, document)
		}
		if object.GetKind() != "CustomResourceDefinition" {
			object.SetNamespace(c.namespace)
		}
		if err := c.Apply(
			c.t.Context(),
			client.ApplyConfigurationFromUnstructured(&object),
			client.FieldOwner("test"),
			client.ForceOwnership,
		); err != nil {
			c.t.Fatalf("%v\n%s", err, document)
		}
	}
}

// instance creates an Instance as an agent would.
func (c *cluster) instance(configuration, name string, properties map[string]string) *v0.Instance {
	c.t.Helper()
	var owner v0.Configuration
	c.get(configuration, &owner)
	instance := &v0.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&owner, v0.ConfigurationKind)},
		},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration, CDIName: v0.CDIName(configuration, name), Capacity: 1,
			Nodes: []string{"node-a"}, BrokerProperties: properties,
		},
	}
	if err := c.Create(c.t.Context(), instance); err != nil {
		c.t.Fatal(err)
	}
	return instance
}

func (c *cluster) get(name string, object client.Object) {
	c.t.Helper()
	if err := c.Get(c.t.Context(), types.NamespacedName{Namespace: c.namespace, Name: name}, object); err != nil {
		c.t.Fatal(err)
	}
}

// eventually waits until check returns "", and fails with what it returned last.
func (c *cluster) eventually(what string, check func() string) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: still not after %v: %s", what, patience, complaint)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// object returns an object of any kind, or nil if it does not exist.
func (c *cluster) object(apiVersion, kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	err := c.Get(c.t.Context(), types.NamespacedName{Namespace: c.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return object
}

// exists waits for an object and returns it.
func (c *cluster) exists(apiVersion, kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	var object *unstructured.Unstructured
	c.eventually(kind+" "+name, func() string {
		if object = c.object(apiVersion, kind, name); object == nil {
			return "it does not exist"
		}
		return ""
	})
	return object
}

func (c *cluster) gone(apiVersion, kind, name string) {
	c.t.Helper()
	c.eventually("removal of "+kind+" "+name, func() string {
		if object := c.object(apiVersion, kind, name); object != nil && object.GetDeletionTimestamp() == nil {
			return "it is there"
		}
		return ""
	})
}

// condition waits for a condition of an Instance or a Configuration.
func (c *cluster) condition(object client.Object, kind string, want metav1.ConditionStatus, reason string, inMessage ...string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("condition %s=%s of %s", kind, want, object.GetName()), func() string {
		c.get(object.GetName(), object)
		var conditions []metav1.Condition
		switch object := object.(type) {
		case *v0.Instance:
			conditions = object.Status.Conditions
		case *v0.Configuration:
			conditions = object.Status.Conditions
		}
		found := meta.FindStatusCondition(conditions, kind)
		if found == nil || found.Status != want || found.Reason != reason {
			return fmt.Sprintf("it is %+v", found)
		}
		for _, part := range inMessage {
			if !strings.Contains(found.Message, part) {
				return fmt.Sprintf("its message lacks %q: %s", part, found.Message)
			}
		}
		return ""
	})
}

// settled waits until the controller has not written for a while, and returns
// the count of its writes.
func (c *cluster) settled() int64 {
	c.t.Helper()
	last, since := c.writes.Load(), time.Now()
	for time.Since(since) < time.Second {
		time.Sleep(10 * time.Millisecond)
		if now := c.writes.Load(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

func configuration(name string) *v0.Configuration {
	return &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
