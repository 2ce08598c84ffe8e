package properties

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

func login(namespace string) *v0.Configuration {
	return &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cam"},
		Spec: v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{DiscoveryProperties: []v0.DiscoveryProperty{{
			Name: "PASSWORD", ValueFrom: &v0.DiscoveryPropertySource{SecretKeyRef: &v0.KeyReference{Name: "login", Key: "password"}},
		}}}},
	}
}

type cluster struct {
	*testing.T
	api       dynamic.Interface
	namespace string
	watcher   *Watcher
	changed   chan struct{}
}

// newCluster starts a watcher that acts as a user without permissions.
func newCluster(t *testing.T) *cluster {
	config := apitest.Start(t)
	c := &cluster{T: t, namespace: apitest.Namespace(t, config), changed: make(chan struct{}, 100)}
	var err error
	if c.api, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	acting := rest.CopyConfig(config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: "agent-" + c.namespace, Groups: []string{"system:authenticated"}}
	client, err := core.NewClient(acting)
	if err != nil {
		t.Fatal(err)
	}
	c.watcher = NewWatcher(client, false, func(types.NamespacedName) {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	})
	t.Cleanup(c.watcher.Close)
	return c
}

func (c *cluster) create(group, version, resource string, content map[string]any) {
	c.Helper()
	object := &unstructured.Unstructured{Object: content}
	_, err := c.api.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).
		Namespace(c.namespace).Create(c.Context(), object, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) grant() {
	c.Helper()
	const group = "rbac.authorization.k8s.io"
	c.create(group, "v1", "roles", map[string]any{
		"apiVersion": group + "/v1", "kind": "Role", "metadata": map[string]any{"name": "login"},
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{"login"}, "verbs": []any{"list", "watch"},
		}},
	})
	c.create(group, "v1", "rolebindings", map[string]any{
		"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "login"},
		"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": "login"},
		"subjects": []any{map[string]any{"kind": "User", "apiGroup": group, "name": "agent-" + c.namespace}},
	})
}

// await resolves the properties when they change, until they are as wanted.
func (c *cluster) await(what string, wanted func(Resolved) bool) {
	c.Helper()
	end := time.After(30 * time.Second)
	for {
		got := c.watcher.Resolve(login(c.namespace))
		if wanted(got) {
			return
		}
		select {
		case <-c.changed:
		case <-end:
			c.Fatalf("%s: got %v, %v", what, got.Properties, got.Err)
		}
	}
}

func password(value string) func(Resolved) bool {
	return func(r Resolved) bool { return r.Err == nil && string(r.Properties["PASSWORD"].GetVec()) == value }
}

func failing(part string) func(Resolved) bool {
	return func(r Resolved) bool { return r.Err != nil && strings.Contains(r.Err.Error(), part) }
}

func TestWatcher(t *testing.T) {
	c := newCluster(t)
	c.await("without a permission", failing("forbidden"))
	c.grant()
	c.await("with a permission", failing("does not exist"))
	c.create("", "v1", "secrets", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login"}, "stringData": map[string]any{"password": "one"},
	})
	c.create("", "v1", "secrets", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "other"}, "stringData": map[string]any{"password": "no"},
	})
	c.await("created", password("one"))
	secrets := c.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.namespace)
	patch := []byte(`{"stringData":{"password":"two"}}`)
	if _, err := secrets.Patch(t.Context(), "login", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await("changed", password("two"))
	if err := secrets.Delete(t.Context(), "login", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await("deleted", failing("does not exist"))
	c.watcher.Drop(types.NamespacedName{Namespace: c.namespace, Name: "cam"})
	if n := len(c.watcher.objects); n != 0 {
		t.Errorf("%d objects are watched after the Configuration was dropped", n)
	}
}

// While a Secret is forbidden, the agent asks for it at growing intervals, but never gives up.
func TestForbiddenIsAskedRarely(t *testing.T) {
	defer func(before []utilruntime.ErrorHandler) { utilruntime.ErrorHandlers = before }(utilruntime.ErrorHandlers)
	utilruntime.ErrorHandlers = nil // one of them waits by the time outside
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		client, err := core.NewClient(&rest.Config{Host: "http://api.test", QPS: -1, Transport: apitest.RoundTripper(
			func(r *http.Request) (*http.Response, error) {
				asked.Add(1)
				body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
				return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatcher(client, false, func(types.NamespacedName) {})
		defer w.Close()
		w.Resolve(login("default"))
		for _, tc := range []struct {
			within     time.Duration
			from, upTo int
		}{{10 * time.Second, 3, 10}, {time.Hour, 20, 60}, {time.Hour, 20, 45}} {
			before := asked.Load()
			time.Sleep(tc.within)
			if n := int(asked.Load() - before); n < tc.from || n > tc.upTo {
				t.Errorf("asked %d times in %s, want %d to %d", n, tc.within, tc.from, tc.upTo)
			}
		}
	})
}

func TestNoGoroutineStays(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := newCluster(t)
	c.await("without a permission", failing("forbidden"))
	c.watcher.Close()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
}

// Of a Secret, only the referenced keys are kept. A Configuration that refers to another
// key of it gets its value, and the first one keeps its own.
func TestAnotherKeyOfTheSameSecret(t *testing.T) {
	c := newCluster(t)
	c.grant()
	c.create("", "v1", "secrets", map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login"},
		"stringData": map[string]any{"password": "s3cret", "user": "admin", "certificate": "large"}})
	c.await("the password", func(got Resolved) bool { return got.Properties["PASSWORD"] != nil && !got.Pending })
	user := login(c.namespace)
	user.Name = "door"
	user.Spec.DiscoveryHandler.DiscoveryProperties[0].ValueFrom.SecretKeyRef.Key = "user"
	c.watcher.Resolve(user)
	c.await("both values", func(got Resolved) bool {
		other := c.watcher.Resolve(user)
		return got.Properties["PASSWORD"] != nil && string(got.Properties["PASSWORD"].Vec) == "s3cret" &&
			other.Properties["PASSWORD"] != nil && string(other.Properties["PASSWORD"].Vec) == "admin"
	})
	for ref, object := range c.watcher.objects {
		if n := len(c.watcher.find(ref).values); n != 2 || len(object.users) != 2 {
			t.Errorf("of %s, %d values are kept for %d Configurations, want 2 for 2", ref, n, len(object.users))
		}
	}
}
