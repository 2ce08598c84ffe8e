package kinds_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// counting returns a copy of a configuration whose requests for discovery are counted.
func counting(config *rest.Config) (*rest.Config, *atomic.Int64) {
	count := &atomic.Int64{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if path := request.URL.Path; path == "/api" || strings.HasPrefix(path, "/apis") && strings.Count(path, "/") < 4 {
				count.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return config, count
}

// One discovery is two requests. It answers all questions about 1000 unknown kinds of
// 100 API groups.
func TestUnknownKindsOnAnAPIServer(t *testing.T) {
	config, requests := counting(apitest.Start(t))
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := kinds.New(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4000 {
		all.Go(func() {
			kind := schema.GroupKind{Group: fmt.Sprintf("g%d.example", i%100), Kind: fmt.Sprintf("K%d", i%1000)}
			if _, err := mapper.RESTMapping(kind, "v1"); !meta.IsNoMatchError(err) {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
	all.Wait()
	if mapping, err := mapper.RESTMapping(schema.GroupKind{Kind: "Pod"}, "v1"); err != nil || mapping.Resource.Resource != "pods" {
		t.Errorf("%v, %v; want pods", mapping, err)
	}
	if sent := requests.Load(); sent > 2 {
		t.Errorf("%d requests for discovery, want 2", sent)
	}
}

// Through a watch, a Mapper notices a kind that is installed, and one that is installed
// again with another scope and another plural.
func TestWatch(t *testing.T) {
	w := apitest.NewWorld(t)
	var mapper *kinds.Mapper
	w.StartManager(nil, manager.Options{}, func(ctx context.Context, mgr manager.Manager) (err error) {
		if mapper, err = kinds.New(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
			return err
		}
		return mapper.Watch(ctx, mgr.GetCache(), nil)
	})
	kind := schema.GroupKind{Group: "flip.akri.sh", Kind: "Flip"}
	found := func(want string) {
		t.Helper()
		w.Eventually("the mapper finds "+want, func() string {
			mapping, err := mapper.RESTMapping(kind, "v1")
			if err != nil {
				return err.Error()
			}
			if found := mapping.Resource.Resource + " " + string(mapping.Scope.Name()); found != want {
				return found
			}
			return ""
		})
	}
	if _, err := mapper.RESTMapping(kind, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("%v, want an unknown kind", err)
	}
	install(w, "flips", "Namespaced")
	found("flips namespace")
	remove(w, "flips")
	install(w, "flops", "Cluster")
	found("flops root")
	remove(w, "flops")
	w.Eventually("the kind is unknown", func() string {
		mapping, err := mapper.RESTMapping(kind, "v1")
		if !meta.IsNoMatchError(err) {
			return fmt.Sprint(mapping, err)
		}
		return ""
	})
}

func install(w *apitest.World, plural, scope string) {
	w.T.Helper()
	w.Apply(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.flip.akri.sh}
spec:
  group: flip.akri.sh
  scope: %[2]s
  names: {kind: Flip, plural: %[1]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, scope))
	w.T.Cleanup(func() { remove(w, plural) })
}

func remove(w *apitest.World, plural string) {
	w.T.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(kinds.CRD().GroupVersionKind())
	definition.SetName(plural + ".flip.akri.sh")
	ctx := context.WithoutCancel(w.T.Context())
	if err := w.Delete(ctx, definition); client.IgnoreNotFound(err) != nil {
		w.T.Error(err)
	}
	w.Eventually("the CustomResourceDefinition is gone", func() string {
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(kinds.CRD().GroupVersionKind())
		if err := w.Get(ctx, client.ObjectKey{Name: definition.GetName()}, crd); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
}
