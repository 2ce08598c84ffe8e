package informers

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/apitest"
)

// deploymentText is a Deployment of an Instance; its number is in all names and UIDs.
const deploymentText = `{
	"apiVersion": "apps/v1", "kind": "Deployment",
	"metadata": {
		"name": "cameras-%06[1]d", "namespace": "site-1", "uid": "0c0ffee0-aaaa-4bbb-8ccc-%012[1]d", "resourceVersion": "1%06[1]d",
		"generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z",
		"labels": {"app.kubernetes.io/managed-by": "akri", "akri.sh/configuration": "cameras", "akri.sh/instance": "cameras-%06[1]d"},
		"ownerReferences": [{"apiVersion": "akri.sh/v0", "kind": "Instance", "name": "cameras-%06[1]d",
			"uid": "1c0ffee0-aaaa-4bbb-8ccc-%012[1]d", "controller": true}],
		"managedFields": [{"manager": "akri-controller", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:akri.sh/instance": {}}}, "f:spec": {"f:replicas": {}}}}]
	},
	"spec": {"replicas": 0}, "status": {}
}`

// A store holds an object in less than 800 bytes, with all that it needs to find it.
func TestMemoryOfObjects(t *testing.T) {
	const count, limit = 5000, 800
	s := newStore(logr.Discard(), func(ownership.Parent) {}, func() {})
	before := apitest.LiveHeap()
	for i := range count {
		full := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(fmt.Appendf(nil, deploymentText, i), &full.Object); err != nil {
			t.Fatal(err)
		}
		object := s.read(full)
		s.record(object, nil)
		if err := s.Update(object); err != nil {
			t.Fatal(err)
		}
	}
	each := (apitest.LiveHeap() - before) / count
	t.Logf("%d bytes", each)
	if each > limit || s.len() != count {
		t.Errorf("each of %d objects takes %d bytes, want at most %d", s.len(), each, limit)
	}
	runtime.KeepAlive(s)
}

// What others add to an object of the controller's, as much as the API server accepts,
// takes little memory.
func TestMemoryOfWhatOthersAdd(t *testing.T) {
	for name, metadata := range map[string]metav1.ObjectMeta{
		"labels": {Labels: map[string]string{"x": strings.Repeat("x", 1<<20)}},
		"an owner": {OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: types.UID(strings.Repeat("x", 1<<20)), Controller: new(true)},
		}},
		"list entries":      {ManagedFields: []metav1.ManagedFieldsEntry{updated("edit", variablesIn(10_000, `\"name\":\"E%05d\"`))}},
		"some list entries": {ManagedFields: []metav1.ManagedFieldsEntry{updated("edit", variablesIn(500, `\"name\":\"E%05d\"`))}},
	} {
		metadata.Name, metadata.Namespace = "x", "ns"
		metadata.ManagedFields = append(metadata.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		})
		text, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
		if err != nil {
			t.Fatal(err)
		}
		each := apitest.KeptBytes(t, text, func(text []byte) (any, error) {
			full := &unstructured.Unstructured{}
			if err := json.Unmarshal(text, &full.Object); err != nil {
				return nil, err
			}
			object := Trim(full)
			if !object.ours {
				t.Errorf("%s: the object is not the controller's, so it would not be kept at all", name)
			}
			return object, nil
		})
		if each > 8<<10 {
			t.Errorf("%s: %d KB of JSON take %d KB", name, len(text)/1000, each/1000)
		}
	}
}
