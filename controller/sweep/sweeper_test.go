package sweep_test

import (
	"maps"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/sweep"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// sweptObject is a ConfigMap before a sweep.
type sweptObject struct {
	reason    string
	namespace string // empty: the namespace of the parents
	labels    map[string]string
	owner     string
	relabel   map[string]string // set afterwards by another client
	manager   string
	swept     bool
}

func (o sweptObject) apply(t *testing.T, api client.Client, name string) error {
	body := &unstructured.Unstructured{}
	body.SetAPIVersion("v1")
	body.SetKind("ConfigMap")
	body.SetNamespace(o.namespace)
	body.SetName(name)
	o.labels[v0.LabelManagedBy] = v0.ManagedBy
	body.SetLabels(o.labels)
	if o.owner != "" {
		body.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "akri.sh/v0", Kind: "Configuration", Name: "gone", UID: "1"}})
	}
	err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(o.manager))
	if err != nil || o.relabel == nil {
		return err
	}
	before := body.DeepCopy()
	labels := body.GetLabels()
	maps.Copy(labels, o.relabel)
	body.SetLabels(labels)
	return api.Patch(t.Context(), body, client.MergeFrom(before), client.FieldOwner("kubectl-label"))
}

// recordLimits returns a configuration whose requests record how many objects they read.
func recordLimits(config *rest.Config) (watched *rest.Config, limits map[string]int) {
	watched, limits = rest.CopyConfig(config), map[string]int{}
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if query := request.URL.Query(); query.Has("labelSelector") {
				limits[query.Get("limit")]++
			}
			return next.RoundTrip(request)
		})
	})
	return watched, limits
}

func TestSweep(t *testing.T) {
	config := apitest.Start(t)
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	home, far := apitest.Namespace(t, config), apitest.Namespace(t, config)
	alive := &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "alive"},
		Spec:       v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "debugEcho"}},
	}
	if err := api.Create(t.Context(), alive); err != nil {
		t.Fatal(err)
	}

	const ours = v0.FieldManagerController
	existing := map[string]sweptObject{
		"orphaned": {
			reason:  "it is as garbage collection leaves it when its Configuration is deleted with --cascade=orphan",
			labels:  map[string]string{v0.LabelConfiguration: "gone"},
			manager: ours,
		},
		"orphaned-instance": {
			reason:  "the same for an Instance",
			labels:  map[string]string{v0.LabelConfiguration: "alive", v0.LabelInstance: "gone"},
			manager: ours,
		},
		"relabeled": {
			reason:  "another client has set the label with its owner",
			labels:  map[string]string{v0.LabelConfiguration: "gone"},
			relabel: map[string]string{v0.LabelOwner: "1"},
			manager: ours,
		},
		"unlabeled": {
			reason:  "no parent is known",
			labels:  map[string]string{v0.LabelOwner: "1"},
			manager: ours,
		},
		"far-lost": {
			reason:    "its parent was deleted without its finalizer",
			namespace: far,
			labels:    map[string]string{v0.LabelConfiguration: "gone", v0.LabelNamespace: home, v0.LabelOwner: "1"},
			manager:   ours,
			swept:     true,
		},
		"far-other": {
			reason:    "its parent was deleted, and another has its name",
			namespace: far,
			labels:    map[string]string{v0.LabelConfiguration: "alive", v0.LabelNamespace: home, v0.LabelOwner: "1"},
			manager:   ours,
			swept:     true,
		},
		"far-relabeled": {
			reason:    "its parent exists, but another client has changed the label with its name",
			namespace: far,
			labels:    map[string]string{v0.LabelConfiguration: "alive", v0.LabelNamespace: home, v0.LabelOwner: string(alive.UID)},
			relabel:   map[string]string{v0.LabelConfiguration: "gone"},
			manager:   ours,
		},
		"far-alive": {
			reason:    "its parent exists",
			namespace: far,
			labels:    map[string]string{v0.LabelConfiguration: "alive", v0.LabelNamespace: home, v0.LabelOwner: string(alive.UID)},
			manager:   ours,
		},
		"alive": {
			reason:  "its Configuration exists, and restores the owner",
			labels:  map[string]string{v0.LabelConfiguration: "alive"},
			manager: ours,
		},
		"owned": {
			reason:  "it has an owner: garbage collection handles it",
			labels:  map[string]string{v0.LabelConfiguration: "gone", v0.LabelOwner: "1"},
			owner:   "1",
			manager: ours,
		},
		"orphan": {
			reason:  "its deletion policy is orphan",
			labels:  map[string]string{v0.LabelConfiguration: "gone", v0.LabelOwner: "1", v0.LabelDeletionPolicy: v0.DeletionPolicyOrphan},
			manager: ours,
		},
		"copied-by-hand": {
			reason:  "the controller did not apply it",
			labels:  map[string]string{v0.LabelConfiguration: "gone", v0.LabelOwner: "1"},
			manager: "kubectl",
		},
	}
	for name, object := range existing {
		if object.namespace == "" {
			object.namespace = home
			existing[name] = object
		}
		if err := object.apply(t, api, name); err != nil {
			t.Fatal(err)
		}
	}

	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	watched, limits := recordLimits(config)
	single, err := objects.NewClient(watched, nil)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := sweep.New(kinds, single, time.Hour).Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for limit := range limits { // users may give the metadata of each object a megabyte
		if number, err := strconv.Atoi(limit); err != nil || number > 10 {
			t.Errorf("pages of %q objects, want at most 10", limit)
		}
	}
	if len(limits) == 0 {
		t.Error("no list was requested")
	}
	want := 0
	for name, object := range existing {
		if object.swept {
			want++
		}
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		err := api.Get(t.Context(), client.ObjectKey{Namespace: object.namespace, Name: name}, found)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if gone := err != nil; gone != object.swept {
			t.Errorf("%s is gone: %v; %s", name, gone, object.reason)
		}
	}
	if removed != want {
		t.Errorf("%d were removed, want %d", removed, want)
	}
}
