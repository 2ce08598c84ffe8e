package facts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

const configuration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
    data: {text: "{{INSTANCE_PROPERTIES.TEXT}}"}`

// objects are a ConfigMap of the device, a Pod that uses it, and one that waits for it.
const objects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: cam-1, ownerReferences: [{apiVersion: akri.sh/v0, kind: Instance, name: cam-1, uid: UID, controller: true}]}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  nodeName: node-a
  containers: [{name: web, image: a}, {name: driver, image: a, resources: {limits: {akri.sh/cam-1: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: waiter}
spec: {containers: [{name: a, image: a, resources: {limits: {akri.sh/cam-1: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: agent, labels: {app.kubernetes.io/name: akri-agent, app.kubernetes.io/part-of: akri}}
spec: {nodeName: node-a, containers: [{name: agent, image: "agent:v1.2.3"}]}`

type world struct{ *apitest.World }

func newWorld(t *testing.T) world {
	w := world{apitest.NewWorld(t, corev1.AddToScheme, appsv1.AddToScheme)}
	w.Apply(configuration)
	instance := w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo"})
	for i := range 5 { // in no order
		w.Instance("cam", fmt.Sprintf("cam-%d", 9-i), nil)
	}
	w.Apply(strings.Replace(objects, "UID", string(instance.UID), 1))
	t.Cleanup(func() { // Pods of all namespaces count
		options := []client.DeleteAllOfOption{client.InNamespace(w.Namespace), client.GracePeriodSeconds(0)}
		if err := w.DeleteAllOf(context.Background(), &corev1.Pod{}, options...); err != nil {
			t.Error(err)
		}
	})
	if err := w.Patch(t.Context(), instance, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"deviceUsage":{"cam-1-0":"node-a"}}}`))); err != nil {
		t.Fatal(err)
	}
	return w
}

// reader returns a Reader for a user, or for the administrator of the API server if there is
// none. If it is cached, the caches are those of controller-runtime.
func (w world) reader(user string, cached bool) Reader {
	w.T.Helper()
	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = user
	kinds, err := discovery.NewDiscoveryClientForConfig(w.Config)
	if err != nil {
		w.T.Fatal(err)
	}
	known := memory.NewMemCacheClient(kinds)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(known), known, nil)
	options := client.Options{Scheme: w.Scheme(), Mapper: mapper}
	if cached {
		objects, err := cache.New(config, cache.Options{Scheme: w.Scheme(), Mapper: mapper})
		if err != nil {
			w.T.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- objects.Start(ctx) }()
		w.T.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				w.T.Error(err)
			}
		})
		options.Cache = &client.CacheOptions{Reader: objects}
	}
	api, err := client.New(config, options)
	if err != nil {
		w.T.Fatal(err)
	}
	return Reader{API: api, Mapper: mapper, Cached: cached}
}

// pages returns the texts of all that a Reader reads.
func (w world) pages(r Reader) (string, error) {
	ctx := w.T.Context()
	var b strings.Builder
	forest, err := r.Forest(ctx, Selection{Namespace: w.Namespace})
	if err != nil {
		return "", err
	}
	_ = forest.Text(&b)
	for _, object := range []string{"/cam-1", "akric/cam", "po/user", "pod/waiter", "cm/cam-1"} {
		kind, name, _ := strings.Cut(object, "/")
		facts, err := r.Why(ctx, kind, w.Namespace, name)
		if err != nil {
			return "", fmt.Errorf("why %s: %w", object, err)
		}
		_ = facts.Text(&b)
		fmt.Fprintln(&b, facts.Slots, facts.Unread)
	}
	explanation, err := r.Explain(ctx, "configmaps", w.Namespace, "cam-1")
	if err != nil {
		return "", err
	}
	_ = explanation.Text(&b)
	nodes, err := r.Nodes(ctx, w.Namespace, w.Namespace)
	if err != nil {
		return "", err
	}
	_ = nodes.Check().Text(&b)
	err = view.Nodes(&b, nodes.Reports())
	return b.String(), err
}

// TestReader reads the same from the API server and from caches, with many calls at a time.
func TestReader(t *testing.T) {
	w := newWorld(t)
	live, cached := w.reader("", false), w.reader("", true)
	want, err := w.pages(live)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"slot cam-1-0  used on node-a\n", "Pod waiter  on no node yet", "Fields with expressions:\n  data.text = foo",
		"node-a  not ready  v1.2.3",
	} {
		if !strings.Contains(want, part) {
			t.Errorf("%q is not in\n%s", part, want)
		}
	}
	w.Eventually("the caches have what the API server has", func() string {
		got, err := w.pages(cached)
		if err == nil && got == want {
			return ""
		}
		return fmt.Sprintf("%v, got\n%s\nwant\n%s", err, got, want)
	})
	var calls errgroup.Group
	for i := range 8 {
		calls.Go(func() error {
			got, err := w.pages([]Reader{live, cached}[i%2])
			if err == nil && got != want {
				err = fmt.Errorf("got\n%s\nwant\n%s", got, want)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}

	facts, err := live.Why(t.Context(), "instance", w.Namespace, "cam-1")
	if err != nil {
		t.Fatal(err)
	}
	slots := []view.Slot{{Name: "cam-1-0", Instance: "cam-1", Usage: "used on node-a  by Pod user", Node: "node-a",
		Resource: "akri.sh/cam-1", Holders: []view.Holder{{Namespace: w.Namespace, Pod: "user", Containers: []string{"driver"}}}}}
	if !reflect.DeepEqual(facts.Slots, slots) {
		t.Errorf("got %+v", facts.Slots)
	}
}

// TestUnread checks that each call says what the user may not read, and none what another may not.
func TestUnread(t *testing.T) {
	w := newWorld(t)
	nobody := w.reader("nobody", false)
	for range 2 {
		nodes, err := nobody.Nodes(t.Context(), "", w.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		for i, things := range []string{"Deployments", "DaemonSets", "Pods", "Nodes", "Configurations", "Instances"} {
			if len(nodes.Unread) != 6 || !strings.HasPrefix(nodes.Unread[i], "no permission to list "+things+", so") {
				t.Errorf("got %q", nodes.Unread)
			}
		}
		facts, err := nobody.Why(t.Context(), "", w.Namespace, "cam-1")
		if err == nil || !strings.Contains(err.Error(), "no Instance, Configuration or Pod") || !slices.Equal(facts.Unread, nodes.Unread[4:]) {
			t.Errorf("%v, got %q", err, facts.Unread)
		}
		system, err := w.reader("", false).System(t.Context(), "")
		if err != nil || len(system.Unread) > 0 {
			t.Errorf("%v, got %+v", err, system)
		}
	}
	nobody.API = failing{nobody.API} // what may not be read may be why
	found, err := nobody.Nodes(t.Context(), "", w.Namespace)
	if err == nil || !strings.Contains(err.Error(), "the time is over") || len(found.Unread) != 4 {
		t.Errorf("%v, got %q", err, found.Unread)
	}
}

// failing is a reader whose lists of Configurations fail, with an error other than Forbidden.
type failing struct{ client.Reader }

func (f failing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, configurations := list.(*v0.ConfigurationList); configurations {
		return errors.New("the time is over")
	}
	return f.Reader.List(ctx, list, options...)
}
