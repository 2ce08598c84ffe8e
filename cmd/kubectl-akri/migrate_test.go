package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

var update = flag.Bool("update", false, "write the output of the commands to testdata")

// newAkriWorld starts a cluster with the original Akri: its definitions, and the
// objects of files as its chart, agents and controller write them.
func newAkriWorld(t *testing.T, files ...string) *world {
	t.Helper()
	config := apitest.Fresh(t)
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{
		v0.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, rbacv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := register(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: &apitest.World{Client: api, T: t, Config: config, Namespace: metav1.NamespaceDefault}}
	w.writeKubeconfig()
	w.define()
	for _, file := range files {
		w.applyFile(file)
	}
	return w
}

// applyFile applies the documents of a file.
func (w *world) applyFile(file string) {
	w.T.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "migrate", file))
	if err != nil {
		w.T.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		w.applyAs(document)
	}
}

// define creates Akri's CustomResourceDefinitions.
func (w *world) define() {
	w.T.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "migrate", "definitions", "*s.yaml"))
	if err != nil || len(files) != 2 {
		w.T.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		w.must(err)
		var definition unstructured.Unstructured
		w.must(yaml.Unmarshal(data, &definition.Object))
		w.must(w.Create(w.T.Context(), &definition, client.FieldOwner("helm")))
	}
	for _, list := range []client.ObjectList{&v0.ConfigurationList{}, &v0.InstanceList{}} {
		w.Eventually("the kinds are served", func() string {
			if err := w.List(w.T.Context(), list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

var managerComment = regexp.MustCompile(`(?m)^# manager: (\S+)$`)

// applyAs applies a document as the field manager that a comment names, and its status.
// metadata.owner is the name of the owner of an Instance or Pod.
func (w *world) applyAs(document string) {
	w.T.Helper()
	manager := "helm"
	if match := managerComment.FindStringSubmatch(document); match != nil {
		manager = match[1]
	}
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		w.T.Fatalf("%v\n%s", err, document)
	}
	if owner, found, _ := unstructured.NestedString(object.Object, "metadata", "owner"); found {
		unstructured.RemoveNestedField(object.Object, "metadata", "owner")
		w.own(&object, owner)
	}
	status, hasStatus := object.Object["status"]
	delete(object.Object, "status")
	apply := client.ApplyConfigurationFromUnstructured(&object)
	if err := w.Client.Apply(w.T.Context(), apply, client.FieldOwner(manager), client.ForceOwnership); err != nil {
		w.T.Fatalf("%v\n%s", err, document)
	}
	if !hasStatus {
		return
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(&object), live); err != nil {
		w.T.Fatal(err)
	}
	live.Object["status"] = status
	if err := w.Status().Update(w.T.Context(), live); err != nil {
		w.T.Fatalf("%v\n%s", err, document)
	}
}

// own sets the owner reference as Akri does: an Instance belongs to its Configuration,
// a Pod to its Instance.
func (w *world) own(object *unstructured.Unstructured, name string) {
	w.T.Helper()
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(v0.ConfigurationKind)
	if object.GetKind() != "Instance" {
		owner.SetGroupVersionKind(v0.InstanceKind)
	}
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, owner); err != nil {
		w.T.Fatal(err)
	}
	controller := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: name, UID: owner.GetUID(), Controller: &controller,
	}})
}

// golden compares the output of a command with a file.
func (r commandResult) golden(t *testing.T, file string) {
	t.Helper()
	file = filepath.Join("testdata", "migrate", file)
	got := r.out + r.err
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the output differs from %s:\n%s", file, got)
	}
}

// TestMigrateCheck checks a cluster in which nothing is in the way, and then one that has
// everything that this Akri treats differently.
func TestMigrateCheck(t *testing.T) {
	w := newAkriWorld(t, "installation.yaml", "healthy.yaml")
	before := w.stored()
	check := w.run("", "migrate", "check")
	check.want(t, 0)
	check.golden(t, "healthy.check.txt")
	w.run("", "migrate", "check", "-o", "json").want(t, 0, `"level": "warning"`, `"outcome": "kept"`)
	w.run("", "migrate", "check", "-o", "yaml").want(t, 0, "level: warning", "outcome: kept")
	w.run("", "migrate", "check", "-o", "table").want(t, 2, "use json or yaml")
	if !slices.Equal(before, w.stored()) {
		t.Error("something was written")
	}
	w.applyFile("troubled.yaml")
	check = w.run("", "migrate", "check")
	check.want(t, 1)
	check.golden(t, "troubled.check.txt")
	w.testReader(t)
}

// testReader checks that what a user may not read is named and left out, and that a user
// who may not read Akri's objects is told so.
func (w *world) testReader(t *testing.T) {
	reader := *w
	reader.World = &apitest.World{Client: w.Client, T: t, Config: rest.CopyConfig(w.Config), Namespace: w.Namespace}
	reader.Config.Impersonate.UserName = "reader"
	reader.writeKubeconfig()
	reader.run("", "migrate", "check").want(t, 2, "list Configurations of all namespaces", "forbidden")
	w.applyAs(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [akri.sh], resources: [configurations, instances], verbs: [list]}
`)
	w.applyAs(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}
`)
	w.Eventually("the role is in force", func() string {
		if result := reader.run("", "migrate", "check"); result.code == 2 {
			return result.err
		}
		return ""
	})
	reader.run("", "migrate", "check").want(t, 1,
		"not read: pods: no permission", "not read: Secrets that Configurations refer to: no permission", "slot cls-8120fe-0", "if a Pod uses it")
}

// stored returns all objects that a command could change.
func (w *world) stored() []string {
	w.T.Helper()
	var all []string
	for _, list := range []client.ObjectList{
		&v0.ConfigurationList{}, &v0.InstanceList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &corev1.PodList{}, &corev1.SecretList{},
	} {
		if err := w.List(w.T.Context(), list); err != nil {
			w.T.Fatal(err)
		}
		all = append(all, list.GetResourceVersion())
		data, err := json.Marshal(list)
		if err != nil {
			w.T.Fatal(err)
		}
		all[len(all)-1] = string(data[strings.Index(string(data), `"items"`):])
	}
	return all
}

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}
