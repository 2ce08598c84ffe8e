package controller_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/internal/apitest"
)

// With spec.serviceAccountName, objects are created with the account's permissions
// only, although the controller itself may do anything here.
func TestServiceAccount(t *testing.T) {
	c := newCluster(t)
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  serviceAccountName: cameras
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {ports: [{port: 80}]}
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden,
		"instanceBrokerResources[0]", c.Namespace+"/cameras", "configmaps", "bind it to a Role")
	c.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cameras}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cameras}
roleRef: {apiGroup: ` + rbacv1.GroupName + `, kind: Role, name: cameras}
subjects: [{kind: ServiceAccount, name: cameras, namespace: ` + c.Namespace + `}]
`)
	c.exists("v1", "ConfigMap", "cfg-1") // it heals by itself
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "instanceBrokerResources[1]", "services")
	if c.object("v1", "Service", "cfg-1") != nil {
		t.Error("a Service exists, but the account may not create Services")
	}
}

// The objects that an account has created in another namespace are deleted by that
// account, although the Configuration that names it goes first: the controller
// itself need not be allowed to.
func TestAccountDeletesAfterItsConfiguration(t *testing.T) {
	options := controller.Options{Workers: 4, Policy: confine.Policy{OtherNamespaces: true}}
	c := newClusterWith(t, options)
	far := apitest.Namespace(t, c.Config)
	for _, account := range []string{"former", "cameras"} {
		c.grant(far, account)
		c.grant(c.Namespace, account)
	}
	as := func(account string) string {
		return strings.Replace(elsewhere(far), "spec:", "spec:\n  serviceAccountName: "+account, 1)
	}
	c.Apply(as("former"))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	for _, account := range []string{"former", "cameras"} { // a change is recorded, too
		c.Apply(as(account))
		c.Eventually("the account", func() string {
			c.Read("cfg-1", instance)
			if name := instance.Annotations[v0.AnnotationServiceAccount]; name != account {
				return "it is " + name
			}
			return ""
		})
	}
	c.ready(configuration("cfg"))
	c.stop()
	var deletions atomic.Int64 // by the account
	c.Config = rest.CopyConfig(c.Config)
	c.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/"+far+"/") &&
				strings.HasSuffix(request.Header.Get("Impersonate-User"), ":cameras") {
				deletions.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	c.runWith(options)
	cfg := configuration("cfg")
	cfg.Namespace = c.Namespace
	c.delete(cfg)
	c.removed(cfg)
	c.delete(instance)
	c.removed(instance)
	if c.found(named("v1", "ConfigMap", far, "cfg-1")) || deletions.Load() == 0 {
		t.Errorf("the account has deleted %d objects", deletions.Load())
	}
}

// grant lets a ServiceAccount of the test's namespace manage ConfigMaps in a
// namespace.
func (c *cluster) grant(namespace, account string) {
	c.T.Helper()
	role := named("rbac.authorization.k8s.io/v1", "Role", namespace, account)
	role.Object["rules"] = []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get", "create", "patch", "delete"},
	}}
	binding := named("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, account)
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": account}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": c.Namespace}}
	for _, object := range []client.Object{role, binding} {
		if err := c.Create(c.T.Context(), object); err != nil {
			c.T.Fatal(err)
		}
	}
}
