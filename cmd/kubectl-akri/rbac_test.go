package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	builtin "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

func appsKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
}

// grant gives a ServiceAccount of the namespace the rules of ClusterRoles, and waits until the
// API server knows.
func (w *world) grant(account string, documents ...string) {
	w.T.Helper()
	var rules []rbacv1.PolicyRule
	for _, document := range documents {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			w.T.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	text, err := json.Marshal(rules)
	if err != nil {
		w.T.Fatal(err)
	}
	name := w.Namespace + "-" + account
	w.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\nrules: " + string(text))
	w.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + name + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + name + "}\n" +
		"subjects: [{kind: ServiceAccount, namespace: " + w.Namespace + ", name: " + account + "}]")
}

// installed returns a ClusterRole in a file of config/rbac.
func installed(t *testing.T, file, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../config/rbac/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		if strings.Contains(document, "kind: ClusterRole\n") && strings.Contains(document, "  name: "+name+"\n") {
			return document
		}
	}
	t.Fatalf("%s has no ClusterRole %s", file, name)
	return ""
}

// TestRBAC checks that what is printed is what the cluster does not grant, by file and by
// name.
func TestRBAC(t *testing.T) {
	w := newWorld(t)
	rbac := func(stdin string, args ...string) commandResult {
		return w.run(stdin, append([]string{"rbac", "--controller", w.Namespace + "/akri"}, args...)...)
	}
	becomes := func(what, configuration string, wanted func(commandResult) bool) {
		t.Helper()
		w.Eventually(what, func() string {
			if got := rbac(configuration, "-f", "-"); !wanted(got) {
				return got.out + got.err
			}
			return ""
		})
	}
	nothing := func(r commandResult) bool { return r.out == "" && strings.Contains(r.err, "needs no roles") }
	printed := rbac(example, "-f", "-")
	printed.want(t, 0, "kind: ClusterRole", `akri.sh/aggregate-to-controller: "true"`, "name: akri-controller-"+w.Namespace+"-cam",
		"- configmaps", "- secrets", "- services", "- create", "!note")
	w.Apply(example)
	if again := rbac("", "cam"); again.out != printed.out {
		t.Errorf("got by name\n%s\nby file\n%s", again.out, printed.out)
	}
	installed := installed(t, "controller.yaml", "akri-controller-workloads")
	usual := changed(t, "kind: Secret", "kind: ConfigMap", "stringData", "data")
	w.grant("akri", installed)
	becomes("the installed role suffices for usual kinds", usual, nothing)
	if again := rbac(example, "-f", "-"); again.out != printed.out {
		t.Errorf("a role is not complete, and would take permissions away:\n%s", again.out)
	}
	w.grant("akri", installed, printed.out)
	becomes("with the printed role, nothing is missing", example, nothing)
	w.grant("akri", installed, strings.Replace(printed.out, "  - patch\n", "", 1))
	becomes("one verb is missing", example, func(r commandResult) bool { return r.out == printed.out })
	w.grant("akri", printed.out)
	becomes("the installed role is not needed", example, nothing)
	w.grant("akri")
	becomes("without a role, all is printed", usual, func(r commandResult) bool { return strings.Contains(r.out, "- configmaps") })
}

// TestRBACGoesOn checks that kinds that the cluster does not have, and a broken
// Configuration, do not hide what others need.
func TestRBACGoesOn(t *testing.T) {
	w := newWorld(t)
	lacks := `the cluster does not have kind %s in "v1": install its CustomResourceDefinition`
	first := "    kind: ConfigMap\n    metadata: {name: \"{{INSTANCE"
	w.run(changed(t, first, "    kind: Foo\n    metadata: {name: x}\n  - apiVersion: v1\n"+strings.Replace(first, "ConfigMap", "Bar", 1)),
		"rbac", "-f", "-").want(t, 1,
		"- secrets\n", "error: in Configuration "+w.Namespace+"/cam: ", fmt.Sprintf(lacks, "Bar"), fmt.Sprintf(lacks, "Foo"), "!needs no roles")
	broken := strings.ReplaceAll(changed(t, "{{NODES}}", "{{NODE"), "name: cam", "name: broken")
	w.run(broken+"---"+example, "rbac", "-f", "-").want(t, 1, "-cam\n", "- secrets",
		"in Configuration "+w.Namespace+"/broken: ", "configurationBrokerResources[0].data.nodes")
	w.run(changed(t, "apiVersion: v1\n    kind: Secret", "apiVersion: akri.sh/v0\n    kind: Instance"), "rbac", "-f", "-").want(t, 0,
		"- instances", "note: ", "is refused")
	reader := w.as("reader", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	if all, some := w.run(example, "rbac", "-f", "-"), reader.run(example, "rbac", "-f", "-"); all.out != some.out {
		t.Errorf("got without the permission to ask\n%s\nwant\n%s", some.out, all.out)
	} else {
		some.want(t, 0, "note: these are all the roles that are needed", "the ClusterRole akri-diagnose grants",
			`cannot create resource "subjectaccessreviews"`)
	}
}

// TestPrintedRole checks that the printed Role lets the ServiceAccount manage the
// objects.
func TestPrintedRole(t *testing.T) {
	w := newWorld(t)
	printed := w.run(changed(t, "spec:\n  discovery", "spec:\n  serviceAccountName: cams\n  discovery"), "rbac", "-f", "-")
	printed.want(t, 0, "kind: Role\n", "kind: RoleBinding", "name: cams",
		"name: akri-controller\n  namespace: akri-system", "name: akri-webhook\n  namespace: akri-system", "kind: ClusterRole")
	namespaced, _, _ := strings.Cut(printed.out, "kind: ClusterRole")
	for document := range strings.SplitSeq(strings.TrimPrefix(namespaced, "---\n"), "---\n") {
		if strings.Contains(document, "kind:") {
			w.Apply(document)
		}
	}
	account := rest.CopyConfig(w.Config)
	account.Impersonate.UserName = "system:serviceaccount:" + w.Namespace + ":cams"
	api, err := client.New(account, client.Options{Scheme: w.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w.Eventually("the Role is in effect", func() string {
		var instances v0.InstanceList
		if err := api.List(t.Context(), &instances, client.InNamespace(w.Namespace)); !apierrors.IsForbidden(err) {
			return "the ServiceAccount can list Instances, which are not in the Role"
		}
		return ""
	})
	w.Eventually("the ServiceAccount can apply", func() string {
		for _, kind := range []string{"Secret", "ConfigMap"} {
			object := empty(kind, w.Namespace)
			if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test")); err != nil {
				return err.Error()
			}
			if err := api.Delete(t.Context(), object); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// TestBuiltInKindsNeedNoCluster checks the guessed resources of kinds built into
// Kubernetes.
func TestBuiltInKindsNeedNoCluster(t *testing.T) {
	w := newWorld(t)
	c, err := accessTo(t, w.kubeconfig).connect(t.Output(), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := rbacOptions{access: accessTo(t, filepath.Join(t.TempDir(), "none"))}
	compared := 0
	for kind := range builtin.Scheme.AllKnownTypes() {
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue // an old version, or not an object
		}
		if err != nil {
			t.Fatal(err)
		}
		resource, err := o.resource(kind)
		if err != nil || resource != mapping.Resource.GroupResource() {
			t.Errorf("%s: got %s (%v), want %s", kind, resource, err, mapping.Resource.GroupResource())
		}
		compared++
	}
	if compared < 50 {
		t.Errorf("compared only %d kinds", compared)
	}
	w.run(example, "rbac", "-f", "-").want(t, 0)
	run(t, example, "rbac", "-f", "-", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "-n", "plant").want(t, 0,
		"name: akri-controller-plant-cam", "note: these are all the roles that are needed")
}

func empty(kind, namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName("tried")
	return object
}
