package webhook

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
)

// The policy for authors checks every kind that the controller may create by
// default.
func TestThePolicyChecksTheUsualKinds(t *testing.T) {
	w := &world{TB: t}
	text := fmt.Sprint(w.manifest("policy/authors.yaml")[0].Object)
	for _, object := range w.manifest("rbac/controller.yaml") {
		if object.GetName() != "akri-controller-workloads" {
			continue
		}
		for _, rule := range object.Object["rules"].([]any) {
			rule := rule.(map[string]any)
			for _, resource := range rule["resources"].([]any) {
				check := fmt.Sprintf("authorizer.group('%s').resource('%s').namespace(request.namespace).check('create')",
					rule["apiGroups"].([]any)[0], resource)
				if !strings.Contains(text, check) {
					t.Errorf("the controller may create %s, but the policy does not check it: %s", resource, check)
				}
			}
		}
		return
	}
	t.Error("config/rbac has no rules")
}

// lenient defines a kind of Configuration without a schema, in a group of its own: what
// the API server stored before the schema had a rule.
func (w *world) lenient() schema.GroupVersionResource {
	w.Helper()
	group := w.Namespace + ".example.com"
	definition := decode(w, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: configurations.`+group+`}
spec:
  group: `+group+`
  names: {kind: Configuration, plural: configurations, singular: configuration}
  scope: Namespaced
  versions:
  - {name: v0, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
	definitions := w.as("").api.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	if _, err := definitions.Create(w.Context(), definition, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := definitions.Delete(background, definition.GetName(), metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
	resource := schema.GroupVersionResource{Group: group, Version: "v0", Resource: "configurations"}
	w.Eventually("the kind is served", func() string {
		_, err := w.as("").api.Resource(resource).Namespace(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return err.Error()
		}
		return ""
	})
	return resource
}

// An author who may not create any workload finds no spelling of its kind that the
// policy does not understand, but the API server does.
func TestThePolicyKnowsEverySpelling(t *testing.T) {
	w := newWorld(t)
	resource := w.lenient()
	w.grant("mallory", rule(resource.Group, "configurations", "create"), rule(v0.Domain, "configurations", "create"))
	create := func(apiVersion, kind, list string) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": resource.GroupVersion().String(), "kind": "Configuration", "metadata": map[string]any{"name": "spelling"},
			"spec": map[string]any{list: []any{map[string]any{"apiVersion": apiVersion, "kind": kind}}},
		}}
		_, err := w.as("mallory").api.Resource(resource).Namespace(w.Namespace).
			Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	rules := []any{map[string]any{
		"apiGroups": []any{resource.Group}, "apiVersions": []any{"v0"}, "operations": []any{"CREATE"}, "resources": []any{"configurations"},
	}}
	w.enforce("policy/authors.yaml", func() error { return create("v1", "Pod", "instanceBrokerResources") },
		func(policy *unstructured.Unstructured) {
			if err := unstructured.SetNestedSlice(policy.Object, rules, "spec", "matchConstraints", "resourceRules"); err != nil {
				t.Fatal(err)
			}
		})
	for _, list := range []string{"instanceBrokerResources", "configurationBrokerResources"} {
		for _, tc := range []struct{ apiVersion, kind, refused string }{
			{"v1", "Pod", "may not create pods"},
			{"v2", "Pod", "may not create pods"},
			{"v1beta1", "Service", "may not create services"},
			{"v1", "ConfigMap", "may not create configmaps"},
			{"v1", "PersistentVolumeClaim", "may not create persistentvolumeclaims"},
			{"apps/v1", "Deployment", "may not create deployments"},
			{"apps/v1beta2", "StatefulSet", "may not create statefulsets"},
			{"apps/v2", "DaemonSet", "may not create daemonsets"},
			{"batch/v1", "Job", "may not create jobs"},
			{"batch/v1beta1", "CronJob", "may not create cronjobs"},
			{"networking.k8s.io/v1", "Ingress", "may not create ingresses"},
			{"networking.k8s.io/v1", "NetworkPolicy", "may not create networkpolicies"},
			{"/v1", "Pod", "cannot be read"},
			{"v1/", "Pod", "cannot be read"},
			{" v1", "Pod", "cannot be read"},
			{"core", "Pod", "cannot be read"},
			{"apps//v1", "Deployment", "cannot be read"},
			{"Apps/v1", "Deployment", "cannot be read"},
			{"v1", "Pod ", "cannot be read"},
			{"v1", "pods/status", "cannot be read"},
			{"v1", "", "cannot be read"},
			{"example.com/v1", "Camera", ""}, // the webhook's business
		} {
			expectSpelling(t, create(tc.apiVersion, tc.kind, list), tc.apiVersion, tc.kind, tc.refused)
		}
	}
}

func expectSpelling(t *testing.T, err error, apiVersion, kind, words string) {
	t.Helper()
	t.Run(fmt.Sprintf("%q %q", apiVersion, kind), func(t *testing.T) { expect(t, err, words) })
}
