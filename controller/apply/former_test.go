package apply

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// Others may create any number of Jobs with the labels, of a megabyte each. They are read
// in small pages, until the Job is found.
func TestFormerJobAmongManyJobs(t *testing.T) {
	w := newWorld(t)
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	create := func(name string, owner types.UID) types.UID {
		text := fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q,
			"labels":{"akri.sh/instance":"cam-1","controller":"akri.sh"},
			"ownerReferences":[{"apiVersion":"akri.sh/v0","kind":"Instance","name":"cam-1","uid":%q,"controller":true}]},
			"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, name, owner)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		job, err := w.dynamic.Resource(jobs).Namespace(w.namespace).Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return job.GetUID()
	}
	const mine, theirs = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
	for i := range 12 {
		create(fmt.Sprintf("a-%02d", i), theirs)
	}
	job := create("b", mine)
	for i := range 12 {
		create(fmt.Sprintf("c-%02d", i), theirs)
	}
	var queries []string
	client := w.interrupted(func(request *http.Request) bool {
		queries = append(queries, request.URL.RawQuery)
		return false
	}, nil)
	instance := ownership.Parent{
		Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cam-1"}, UID: mine,
	}
	found, err := client.FormerJob(t.Context(), jobs, instance)
	if err != nil || found != job {
		t.Errorf("found %q, %v, want %q", found, err, job)
	}
	for _, query := range queries {
		if !strings.Contains(query, "limit=5") || strings.Contains(query, "resourceVersion=0") { // which means: all of them
			t.Errorf("a list without a limit: %s", query)
		}
	}
	if len(queries) != 3 {
		t.Errorf("%d requests, want those for the first 15 of 25: %v", len(queries), queries)
	}
	instance.UID = types.UID(v0.Domain)
	if found, err := client.FormerJob(t.Context(), jobs, instance); err != nil || found != "" {
		t.Errorf("of another Instance: found %q, %v", found, err)
	}
}
