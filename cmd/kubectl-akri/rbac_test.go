package main

import (
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	builtin "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
)

func appsKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
}

// TestRBAC checks that only missing roles are printed, by file and by name.
func TestRBAC(t *testing.T) {
	w := newWorld(t)
	printed := w.run(example, "rbac", "-f", "-")
	printed.want(t, 0, "kind: ClusterRole", `akri.sh/aggregate-to-controller: "true"`, "name: akri-controller-"+w.Namespace+"-cam",
		"- secrets", "- create", "!configmaps", "!services")
	w.Apply(example)
	if again := w.run("", "rbac", "cam"); again.out != printed.out {
		t.Errorf("got by name\n%s\nby file\n%s", again.out, printed.out)
	}
	w.run(changed(t, "kind: Secret", "kind: ConfigMap", "stringData", "data"), "rbac", "-f", "-").want(t, 0, "needs no roles", "!ClusterRole")
	w.run(changed(t, "kind: Secret", "kind: Secrez"), "rbac", "-f", "-").want(t, 1, `the cluster does not have kind Secrez in "v1"`)
	w.run(changed(t, "{{NODES}}", "{{NODE"), "rbac", "-f", "-").want(t, 1, "configurationBrokerResources[0].data.nodes")
	w.run(changed(t, "apiVersion: v1\n    kind: Secret", "apiVersion: akri.sh/v0\n    kind: Instance"), "rbac", "-f", "-").want(t, 0,
		"- instances", "note: ", "is refused")
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

// TestPrintedRoleForAgents checks that the printed Role lets agents read the Secret in
// discoveryProperties, and nothing else.
func TestPrintedRoleForAgents(t *testing.T) {
	w := newWorld(t)
	agent := "agent-" + w.Namespace // bindings to the usual one would meet in one namespace
	printed := w.run(`{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, spec: {discoveryHandler: {name: onvif, `+
		`discoveryProperties: [{name: A, valueFrom: {secretKeyRef: {name: login, key: a}}}, `+
		`{name: B, valueFrom: {secretKeyRef: {name: login, key: b}}}]}}}`, "rbac", "-f", "-", "--agent", w.Namespace+"/"+agent)
	printed.want(t, 0, "kind: Role\n", "name: akri-discovery-cam", "- login\n", "kind: RoleBinding", "!ClusterRole")
	for document := range strings.SplitSeq(strings.TrimPrefix(printed.out, "---\n"), "---\n") {
		w.Apply(document)
	}
	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + w.Namespace + ":" + agent
	api, err := client.New(config, client.Options{Scheme: w.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) error {
		secrets := &unstructured.UnstructuredList{}
		secrets.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
		return api.List(t.Context(), secrets, client.InNamespace(w.Namespace), client.MatchingFields{"metadata.name": name})
	}
	w.Eventually("agents can read the Secret", func() string {
		if err := list("login"); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := list("other"); !apierrors.IsForbidden(err) {
		t.Errorf("agents read another Secret: %v", err)
	}
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
		resource, err := o.resource(cli.Streams{}, kind)
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
		"name: akri-controller-plant-cam")
}

func empty(kind, namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName("tried")
	return object
}
