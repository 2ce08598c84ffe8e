package controller_test

import (
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// storedTemplates use fields that the API server stores as others.
var storedTemplates = configWith("cfg", `
  - apiVersion: v1
    kind: Secret
    metadata: {name: keys}
    data: {both: b2xk, kept: a2VwdA==}
    stringData: {both: new, host: "{{ INSTANCE_NAME }}.local", port: "80"}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: broker}
    spec:
      selector: {matchLabels: {app: broker}}
      template:
        metadata: {labels: {app: broker}}
        spec:
          serviceAccount: reader
          containers: [{name: main, image: main}]`)

// TestFieldsStoredAsOthers checks that edits of the template and of the objects are noticed
// in fields that the API server stores as others.
func TestFieldsStoredAsOthers(t *testing.T) {
	c := newCluster(t)
	c.Apply(storedTemplates)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)

	const (
		secret     = "v1 Secret keys"
		deployment = "apps/v1 Deployment broker"
	)
	want := map[string]any{"both": "bmV3", "kept": "a2VwdA==", "host": "Y2ZnLTEubG9jYWw=", "port": "ODA="}
	data := func() string { return unequal(c.read(secret).Object["data"], want) }
	account := func(name string) func() string {
		return func() string {
			found, _, _ := unstructured.NestedString(c.read(deployment).Object, "spec", "template", "spec", "serviceAccountName")
			return unequal(found, name)
		}
	}
	c.Eventually("the Secret", data)
	c.Eventually("the Deployment", account("reader"))

	for _, body := range []string{
		`{"data": {"port": "OTA="}}`, `{"data": {"port": null}}`, `{"stringData": {"host": "elsewhere", "kept": "changed"}}`,
	} {
		c.edit(secret, patch(types.MergePatchType, body))
		c.Eventually("repair after "+body, data)
	}
	const other = `{"spec": {"template": {"spec": {"serviceAccount": "other", "serviceAccountName": "other"}}}}`
	c.edit(deployment, patch(types.MergePatchType, other))
	c.Eventually("repair of the Deployment", account("reader"))

	c.edit(v0.GroupVersion.String()+" Configuration cfg", patch(types.JSONPatchType, `[
		{"op": "remove", "path": "/spec/instanceBrokerResources/0/stringData/port"},
		{"op": "add", "path": "/spec/instanceBrokerResources/0/stringData/speed", "value": "slow"},
		{"op": "replace", "path": "/spec/instanceBrokerResources/1/spec/template/spec/serviceAccount", "value": "writer"}]`))
	delete(want, "port")
	want["speed"] = "c2xvdw=="
	c.Eventually("the Secret of the edited template", data)
	c.Eventually("the Deployment of the edited template", account("writer"))

	writes := c.settled()
	if after := c.settled(); after != writes {
		t.Errorf("%d writes at rest", after-writes)
	}
}

func unequal(got, want any) string {
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	return ""
}
