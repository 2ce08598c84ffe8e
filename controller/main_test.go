package controller_test

import (
	"context"
	"fmt"
	"io"
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

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// cluster is a namespace on a real API server in which a controller works.
type cluster struct {
	*apitest.World
	stop func()
	// writes counts the controller's requests that are not reads.
	writes *atomic.Int64
	// response, if set, may respond to a request of the controller.
	response *atomic.Pointer[func(*http.Request) *http.Response]
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, controller.Options{Workers: 4})
}

func newClusterWith(t *testing.T, options controller.Options) *cluster {
	t.Helper()
	c := &cluster{World: apitest.NewWorld(t), writes: &atomic.Int64{}, response: &atomic.Pointer[func(*http.Request) *http.Response]{}}
	c.runWith(options)
	return c
}

// in returns the cluster for a subtest, which reports its failures.
func (c *cluster) in(t *testing.T) *cluster {
	sub := *c
	sub.World = c.In(t)
	return &sub
}

func (c *cluster) run() { c.runWith(controller.Options{Workers: 4}) }

// runWith starts a controller, which lasts until stop is called or the test ends.
func (c *cluster) runWith(options controller.Options) {
	c.T.Helper()
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			// Requests for other tests' namespaces are not counted.
			if request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/"+c.Namespace+"/") {
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
		c.T.Fatal(err)
	}
	manage := manager.Options{Scheme: scheme, Cache: controller.CacheOptions()}
	c.stop = c.StartManager(config, manage, func(ctx context.Context, mgr manager.Manager) error {
		return controller.Setup(ctx, mgr, options)
	})
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

// answered returns an answer in JSON to a request.
func answered(request *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		Request: request,
	}
}

// object returns an object of any kind, or nil if it does not exist.
func (c *cluster) object(apiVersion, kind, name string) *unstructured.Unstructured {
	c.T.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	err := c.Get(c.T.Context(), c.Key(name), object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		c.T.Fatal(err)
	}
	return object
}

// exists waits for an object and returns it.
func (c *cluster) exists(apiVersion, kind, name string) *unstructured.Unstructured {
	c.T.Helper()
	var object *unstructured.Unstructured
	c.Eventually(kind+" "+name, func() string {
		if object = c.object(apiVersion, kind, name); object == nil {
			return "it does not exist"
		}
		return ""
	})
	return object
}

func (c *cluster) gone(apiVersion, kind, name string) {
	c.T.Helper()
	c.Eventually("removal of "+kind+" "+name, func() string {
		if object := c.object(apiVersion, kind, name); object != nil && object.GetDeletionTimestamp() == nil {
			return "it is there"
		}
		return ""
	})
}

// condition waits for a condition of an Instance or a Configuration.
func (c *cluster) condition(object client.Object, kind string, want metav1.ConditionStatus, reason string, inMessage ...string) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("condition %s=%s of %s", kind, want, object.GetName()), func() string {
		c.Read(object.GetName(), object)
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

// ready waits until Instances and Configurations are ready.
func (c *cluster) ready(objects ...client.Object) {
	c.T.Helper()
	for _, object := range objects {
		c.condition(object, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	}
}

// has waits until a ConfigMap has a value.
func (c *cluster) has(name, key, want string) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%s=%s in ConfigMap %s", key, want, name), func() string {
		data, _, _ := unstructured.NestedStringMap(c.exists("v1", "ConfigMap", name).Object, "data")
		if data[key] != want {
			return "it is " + data[key]
		}
		return ""
	})
}

// settled waits until the controller has not written for a while, and returns
// the count of its writes.
func (c *cluster) settled() int64 {
	c.T.Helper()
	last, since := c.writes.Load(), time.Now()
	for time.Since(since) < time.Second {
		time.Sleep(10 * time.Millisecond)
		if now := c.writes.Load(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

// patch merges a patch into an object as another client.
func (c *cluster) patch(object client.Object, patch string) {
	c.T.Helper()
	if err := c.Patch(c.T.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.T.Fatal(err)
	}
}

func (c *cluster) delete(object client.Object, options ...client.DeleteOption) {
	c.T.Helper()
	if err := c.Delete(c.T.Context(), object, options...); err != nil {
		c.T.Fatal(err)
	}
}

// replaced waits until another object has the name of one.
func (c *cluster) replaced(object *unstructured.Unstructured) {
	c.T.Helper()
	c.Eventually("a new "+object.GetKind(), func() string {
		now := c.object(object.GetAPIVersion(), object.GetKind(), object.GetName())
		if now == nil || now.GetUID() == object.GetUID() {
			return "there is none"
		}
		return ""
	})
}

// deleteCluster deletes a cluster-scoped object.
func (c *cluster) deleteCluster(apiVersion, kind, name string) {
	c.T.Helper()
	if err := c.Delete(context.Background(), named(apiVersion, kind, "", name)); err != nil {
		c.T.Fatal(err)
	}
}

func configuration(name string) *v0.Configuration {
	return &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// configWith returns a Configuration with the broker resources of its Instances.
func configWith(name, resources string) string {
	return `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: ` + name + `}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:` + resources
}
