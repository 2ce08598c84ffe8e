package controller_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		return answered(request, http.StatusForbidden, forbidden)
	})
	c.Apply(configWith("cfg", `
  - {apiVersion: v1, kind: Service, metadata: {name: "{{INSTANCE_NAME}}"}, spec: {ports: [{port: 80}]}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}}`))
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "services", "verbs: [get, list, watch")
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "instanceBrokerResources[0]")
	c.exists("v1", "ConfigMap", "cfg-1")

	c.respond(nil) // the permission is granted
	c.ready(instance, configuration("cfg"))
}

// A version that is no longer served ends a watch that has worked. It is reported,
// nothing is deleted meanwhile, and the controller goes on when it is served again.
func TestVersionNoLongerServed(t *testing.T) {
	c := newCluster(t)
	serve := func(beta bool) {
		c.installVersions("twins", "Namespaced", map[string]bool{"v1": true, "v1beta1": beta})
	}
	serve(true)
	c.Apply(configWith("cfg", `
  - {apiVersion: test.akri.sh/v1beta1, kind: Twin, metadata: {name: "{{INSTANCE_NAME}}"}, spec: {a: b}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	twin := c.exists("test.akri.sh/v1", "Twin", "cfg-1")
	serve(false)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonKindUnavailable, `"Twin"`, `"test.akri.sh/v1beta1"`)
	// The template of the other object is removed while the watch does not work.
	c.Apply(configWith("cfg", `
  - {apiVersion: test.akri.sh/v1beta1, kind: Twin, metadata: {name: "{{INSTANCE_NAME}}"}, spec: {a: b}}`))
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonKindUnavailable, "instanceBrokerResources[0]")
	c.exists("v1", "ConfigMap", "cfg-1")

	serve(true)
	c.ready(instance, configuration("cfg"))
	c.gone("v1", "ConfigMap", "cfg-1")
	if now := c.exists("test.akri.sh/v1", "Twin", "cfg-1"); now.GetUID() != twin.GetUID() {
		t.Error("the object was replaced")
	}
}
