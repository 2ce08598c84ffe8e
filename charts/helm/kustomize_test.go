package helm_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/charts/helm"
)

// TestChartIsKustomization compares what the chart renders with what config/ installs,
// object by object.
func TestChartIsKustomization(t *testing.T) {
	for name, test := range map[string]struct {
		dirs   []string
		values string
	}{
		"defaults":     {dirs: []string{"default"}, values: `{namespace: {create: true}}`},
		"all handlers": {dirs: everyDir, values: everyHandler},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]object{}
			for _, dir := range test.dirs {
				maps.Copy(want, kustomize(t, "../../config/"+dir))
			}
			got := render(t, test.values)
			for _, o := range got {
				trim(o)
			}
			for _, o := range want {
				trim(o)
			}
			joinLines(got)
			joinLines(want)
			compare(t, got, want)
		})
	}
}

// everyDir lists the directories in config/ of Akri and all handlers, and everyHandler has
// the values for the same.
var everyDir = []string{"default", "debug-echo", "udev", "onvif", "opcua", "mqtt", "mdns", "http"}

const everyHandler = `
namespace: {create: true}
handlers:
  debugEcho: {enabled: true}
  udev: {enabled: true}
  onvif: {enabled: true}
  opcua: {enabled: true}
  mqtt: {enabled: true}
  mdns: {enabled: true}
  http: {enabled: true}
`

// compare reports the objects that differ.
func compare(t *testing.T, got, want map[string]object) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] == nil {
			t.Errorf("%s: missing", id)
		} else if !reflect.DeepEqual(got[id], want[id]) {
			t.Errorf("%s differs:\n%s", id, difference(t, got[id], want[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if want[id] == nil {
			t.Errorf("%s: not expected:\n%s", id, text(t, got[id]))
		}
	}
}

// difference returns the lines that only one of two objects has.
func difference(t *testing.T, got, want object) string {
	t.Helper()
	var result strings.Builder
	gotLines, wantLines := strings.Split(text(t, got), "\n"), strings.Split(text(t, want), "\n")
	for _, line := range gotLines {
		if !slices.Contains(wantLines, line) {
			result.WriteString("got  " + line + "\n")
		}
	}
	for _, line := range wantLines {
		if !slices.Contains(gotLines, line) {
			result.WriteString("want " + line + "\n")
		}
	}
	if result.Len() == 0 {
		return "the same lines in another order:\n" + text(t, got)
	}
	return result.String()
}

// object is a Kubernetes object as read from YAML.
type object = map[string]any

// release is the release that tests render.
func release() *helm.Release { return &helm.Release{Name: "akri", Namespace: "akri-system"} }

// render returns what the chart renders with values, by kind, namespace and name.
func render(t *testing.T, values string) map[string]object {
	t.Helper()
	manifest, err := release().Render(parse(t, values))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, manifest)
}

func kustomize(t *testing.T, dir string) map[string]object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(manifest))
}

// kustomizeOwn builds a kustomization of an operator's own, for which the directory config is
// ../../config.
func kustomizeOwn(t *testing.T, text string) map[string]object {
	t.Helper()
	if err := os.MkdirAll("../../bin", 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("../../bin", "my-akri-") // kustomize takes only relative paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomize(t, dir)
}

// objects returns the objects of a manifest, by kind, namespace and name.
func objects(t *testing.T, manifest string) map[string]object {
	t.Helper()
	result := map[string]object{}
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		o := parse(t, document)
		if len(o) == 0 {
			continue
		}
		if items, ok := o["items"].([]any); ok && o["kind"] == "List" {
			for _, item := range items {
				maps.Copy(result, objects(t, text(t, item)))
			}
			continue
		}
		metadata, _ := o["metadata"].(object)
		namespace, _ := metadata["namespace"].(string)
		id := fmt.Sprintf("%v %s/%v", o["kind"], namespace, metadata["name"])
		if result[id] != nil {
			t.Errorf("%s: twice", id)
		}
		result[id] = o
	}
	return result
}

// trim removes what differs on purpose: the labels of the chart and Helm's annotations.
func trim(o object) {
	metadata := o["metadata"].(object)
	if labels, ok := metadata["labels"].(object); ok {
		for _, name := range []string{
			"app.kubernetes.io/part-of", "app.kubernetes.io/instance", "app.kubernetes.io/version",
			"app.kubernetes.io/managed-by", "helm.sh/chart",
		} {
			delete(labels, name)
		}
		if len(labels) == 0 {
			delete(metadata, "labels")
		}
	}
	if annotations, ok := metadata["annotations"].(object); ok {
		delete(annotations, "helm.sh/resource-policy")
	}
}

// joinLines replaces line breaks in the expressions of policies, because kustomize
// doubles them in folded strings.
func joinLines(all map[string]object) {
	for id, o := range all {
		if !strings.HasPrefix(id, "ValidatingAdmissionPolicy ") {
			continue
		}
		spec := o["spec"].(object)
		for _, key := range []string{"matchConditions", "variables", "validations"} {
			list, _ := spec[key].([]any)
			for _, entry := range list {
				for name, value := range entry.(object) {
					entry.(object)[name] = strings.Join(strings.Fields(value.(string)), " ")
				}
			}
		}
	}
}

func parse(t *testing.T, text string) object {
	t.Helper()
	var result object
	if err := yaml.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return result
}

func text(t *testing.T, o any) string {
	t.Helper()
	data, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestQuickStartKustomization builds the kustomization of the quick start: it replaces the
// images of all components.
func TestQuickStartKustomization(t *testing.T) {
	_, rest, found := strings.Cut(read(t, "../../docs/quickstart.md"), "```yaml\n# my-akri/kustomization.yaml")
	block, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatal("docs/quickstart.md has no my-akri/kustomization.yaml")
	}
	images := 0
	for id, o := range kustomizeOwn(t, strings.ReplaceAll("#"+block, "../config", "../../config")) {
		containers, _, _ := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
		for _, c := range containers {
			image, _ := c.(object)["image"].(string)
			if images++; !strings.HasPrefix(image, "registry.example/akri/") || !strings.HasSuffix(image, ":v1.2.3") {
				t.Errorf("%s has the image %s", id, image)
			}
		}
	}
	if images != 4 {
		t.Errorf("%d images, want those of the controller, the webhook, the agent and the handler", images)
	}
}
