package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
)

// createCam creates a Configuration, and returns a client and that of the Configuration's resource.
func createCam(t *testing.T) (client dynamic.Interface, api dynamic.ResourceInterface) {
	t.Helper()
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	api = client.Resource(v0.ConfigurationResource).Namespace(apitest.Namespace(t, config))
	if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Configuration", "metadata": map[string]any{"name": "cam"},
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": "onvif"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // another test may use the same name
		if err := api.Delete(context.WithoutCancel(t.Context()), "cam", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return client, api
}

// One cause makes the agents of all nodes fail. Their reports do not fill the object, others
// take the places of those that recover, and nothing of them is left when all have.
func TestFailuresOfManyNodes(t *testing.T) {
	fulltest.Only(t)
	client, api := createCam(t)
	read := func() *unstructured.Unstructured {
		t.Helper()
		object, err := api.Get(t.Context(), "cam", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	var reporters []*reporter
	for i := range v0.MaxDiscoveryFailures + 10 {
		reporters = append(reporters, newReporter(client, fmt.Sprintf("test.node-%d", i), slog.New(slog.DiscardHandler)))
	}
	// report has all nodes report, as their reconcilers do, until none of them has to wait. It
	// returns the field managers that the object then has of them.
	report := func(failing func(manager string) bool) (managers []string) {
		t.Helper()
		for next := time.Now(); !next.IsZero(); {
			time.Sleep(time.Until(next))
			next = time.Time{}
			for _, r := range reporters {
				node := strings.TrimPrefix(r.manager, "test.")
				known, err := readConfiguration(read(), node)
				if err != nil {
					t.Fatal(err)
				}
				found := failures{node: node}
				if failing(r.manager) {
					found.add("onvif", "Secret login does not exist")
				}
				again, err := r.report(t.Context(), known, found.sorted())
				if err != nil {
					t.Fatal(err)
				}
				if again.After(next) {
					next = again
				}
			}
		}
		for _, entry := range read().GetManagedFields() {
			if strings.HasPrefix(entry.Manager, "test.") {
				managers = append(managers, entry.Manager)
			}
		}
		return managers
	}
	listed := report(func(string) bool { return true })
	if len(listed) != v0.MaxDiscoveryFailures {
		t.Errorf("%d nodes are listed, want %d", len(listed), v0.MaxDiscoveryFailures)
	}
	recovered := listed[:3]
	report(func(manager string) bool { return !slices.Contains(recovered, manager) })
	listed = report(func(manager string) bool { return !slices.Contains(recovered, manager) }) // those that had no room
	if len(listed) != v0.MaxDiscoveryFailures || slices.ContainsFunc(recovered, func(r string) bool { return slices.Contains(listed, r) }) {
		t.Errorf("%d nodes are listed, want others in the places of %v: %v", len(listed), recovered, listed)
	}
	if left := report(func(string) bool { return false }); len(left) > 0 {
		t.Errorf("field managers are left: %v", left)
	}
}
