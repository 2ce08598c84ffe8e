package controller_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// A kind that the controller may not watch is reported on the Configuration before
// the first device is found, with the missing rule, and its siblings do not wait.
func TestKindThatMayNotBeWatched(t *testing.T) {
	c := newCluster(t)
	c.respond(func(request *http.Request) *http.Response {
		if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/services") {
			return nil
		}
		const forbidden = `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"services is forbidden: User \"u\" cannot list resource \"services\" in API group \"\" at the cluster scope"}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(forbidden)),
		}
	})
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {apiVersion: v1, kind: Service, metadata: {name: "{{INSTANCE_NAME}}"}, spec: {ports: [{port: 80}]}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}}
`)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "services", "verbs: [get, list, watch")
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "instanceBrokerResources[0]")
	c.exists("v1", "ConfigMap", "cfg-1")

	c.respond(nil) // the permission is granted
	c.condition(instance, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.condition(configuration("cfg"), v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
}

// A version that is no longer served ends a watch that has worked. It is reported,
// nothing is deleted meanwhile, and the controller goes on when it is served again.
func TestVersionNoLongerServed(t *testing.T) {
	c := newCluster(t)
	c.installTwins()
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {apiVersion: test.akri.sh/v1, kind: Twin, metadata: {name: "{{INSTANCE_NAME}}"}, spec: {a: b}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}}
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	twin := c.exists("test.akri.sh/v1", "Twin", "cfg-1")
	serve := func(v1 bool) {
		served := `{"name":"v1","served":false,"storage":false,` +
			`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
		if v1 {
			served = strings.Replace(served, `"served":false`, `"served":true`, 1)
		}
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		definition.SetName("twins.test.akri.sh")
		patch := `{"spec":{"versions":[` + served + `,` + strings.NewReplacer(`"v1"`, `"v2"`, `"storage":false`, `"storage":true`,
			`"served":false`, `"served":true`).Replace(served) + `]}}`
		if err := c.Patch(t.Context(), definition, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	serve(false)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonKindUnavailable, `"Twin"`, `"test.akri.sh/v1"`)
	// The template of the other object is removed while the watch does not work.
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {apiVersion: test.akri.sh/v1, kind: Twin, metadata: {name: "{{INSTANCE_NAME}}"}, spec: {a: b}}
`)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonKindUnavailable, "instanceBrokerResources[0]")
	c.exists("v1", "ConfigMap", "cfg-1")

	serve(true)
	c.condition(instance, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.condition(configuration("cfg"), v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.gone("v1", "ConfigMap", "cfg-1")
	if now := c.exists("test.akri.sh/v1", "Twin", "cfg-1"); now.GetUID() != twin.GetUID() {
		t.Error("the object was replaced")
	}
}
