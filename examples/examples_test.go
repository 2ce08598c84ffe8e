package examples_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/templating/cases"
)

// customKinds are kinds without Go types here. Their objects are not decoded.
var customKinds = []schema.GroupKind{
	{Group: "shifu.edgenesis.io", Kind: "EdgeDevice"},
	{Group: "kubevirt.io", Kind: "VirtualMachine"},
}

// TestExamples renders each example and compares the result. The rendered objects
// must be valid, and the controller must be allowed to manage them.
func TestExamples(t *testing.T) {
	fsys := os.DirFS(".")
	dirs, err := cases.Find(fsys)
	if err != nil || len(dirs) < 9 {
		t.Fatalf("found %d examples, %v: want nine or more", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			result, err := cases.Run(fsys, dir)
			if err != nil {
				t.Fatal(err)
			}
			if !result.Passed() {
				t.Errorf("kubectl akri test --update examples rewrites it: -expected +rendered\n%s", cmp.Diff(string(result.Want), string(result.Got)))
			}
			if strings.Contains(string(result.Want), "# error") {
				t.Error("an example must render without errors")
			}
			rules := controllerRules(t, dir)
			for _, object := range decode(t, result.Want) {
				checkKind(t, object)
				checkAllowed(t, object, rules)
			}
			checkLint(t, dir)
		})
	}
}

// TestManifests checks the manifests that an administrator applies alongside an
// example.
func TestManifests(t *testing.T) {
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Base(name) != "rbac.yaml" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, object := range decode(t, data) {
			checkKind(t, object)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkLint checks that an example has no mistakes, and no warnings for its own
// devices and for samples.
func checkLint(t *testing.T, dir string) {
	t.Helper()
	configuration := path.Join(dir, "configuration.yaml")
	checkLintOf(t, "-f", configuration, "-i", path.Join(dir, "instances.yaml"))
	checkLintOf(t, "-f", configuration)
}

func checkLintOf(t *testing.T, args ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	for _, command := range offline.Commands(cli.Streams{Out: &out, Err: &errOut}) {
		if command.Name() == "lint" {
			command.SetArgs(args)
			if err := command.Execute(); err != nil || out.String() != "1 Configuration, no errors\n" {
				t.Errorf("lint: %v\n%s%s", err, out.String(), errOut.String())
			}
		}
	}
}

func decode(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// checkKind decodes a built-in kind. Unknown fields and wrong types are errors.
func checkKind(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	kind := object.GroupVersionKind()
	if slices.Contains(customKinds, kind.GroupKind()) {
		return
	}
	data, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := strict.Decode(data, nil, nil); err != nil {
		t.Errorf("%s %s: %v", kind.Kind, object.GetName(), err)
	}
}

// controllerRules returns the rules that config/rbac and the example grant to the
// controller.
func controllerRules(t *testing.T, dir string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, name := range []string{"../config/rbac/controller.yaml", path.Join(dir, "rbac.yaml"), path.Join(path.Dir(dir), "rbac.yaml")} {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, data) {
			if object.GetKind() != "ClusterRole" || object.GetLabels()["akri.sh/aggregate-to-controller"] != "true" {
				continue
			}
			var role rbacv1.ClusterRole
			text, err := object.MarshalJSON()
			if err == nil {
				err = yaml.Unmarshal(text, &role)
			}
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func checkAllowed(t *testing.T, object *unstructured.Unstructured, rules []rbacv1.PolicyRule) {
	t.Helper()
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource) &&
				slices.Contains(r.Verbs, verb)
		}) {
			t.Errorf("the controller may not %s %s: add a rule to the example's rbac.yaml", verb, resource.GroupResource())
		}
	}
}
