package controller_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// Something that answers 409 for good is reported, with back-off. Objects that were
// applied meanwhile are not applied again.
func TestConflictsThatDoNotEnd(t *testing.T) {
	c := newCluster(t)
	var refused, applied atomic.Int64
	c.respond(func(request *http.Request) *http.Response {
		switch path := request.URL.Path; {
		case request.Method == http.MethodPatch && strings.HasSuffix(path, c.Namespace+"/services/refused"):
			refused.Add(1)
			const answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"a webhook says no"}`
			return answered(request, http.StatusConflict, answer)
		case request.Method == http.MethodPatch && strings.HasSuffix(path, c.Namespace+"/configmaps/applied"):
			applied.Add(1)
		}
		return nil
	})
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: applied}
  - apiVersion: v1
    kind: Service
    metadata: {name: refused}
    spec: {ports: [{port: 80}]}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonApplyFailed,
		"Service", "look for a webhook", "a webhook says no")
	c.Read("cfg-1", instance)
	if n := len(instance.Status.Resources); n != 2 {
		t.Errorf("the inventory has %d entries, want 2", n)
	}
	if n := applied.Load(); n != 1 {
		t.Errorf("the other object was applied %d times", n)
	}
	if n := refused.Load(); n > 10 {
		t.Errorf("the refused object was tried %d times", n)
	}
}
