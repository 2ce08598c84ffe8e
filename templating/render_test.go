package templating_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/templating"
)

// archive returns the templates and values of an archive under testdata/render.
func archive(t testing.TB, name string) (spec, fleet) {
	t.Helper()
	data, err := os.ReadFile("testdata/render/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	a := txtar.Parse(data)
	return decode[spec](t, a.Files[0].Data), decode[fleet](t, a.Files[1].Data)
}

func mustCompile(t testing.TB, level templating.Level, templates []map[string]any) *templating.Set {
	t.Helper()
	set, diags := templating.Compile(level, templates)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

// one returns a template whose field spec.it is value.
func one(value any, annotations map[string]any) map[string]any {
	metadata := map[string]any{"name": "x"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Probe", "metadata": metadata, "spec": map[string]any{"it": value}}
}

// camera is the Instance of most tests.
var camera = templating.Values{
	Configuration: "cam", Namespace: "edge", Capacity: 5,
	Instance: templating.Instance{
		Name:       "cam-8120fe",
		Properties: map[string]string{"MODEL": "t1", "IP": "10.0.0.5", "URL": "rtsp://10.0.0.5:554/live?x=1", "EMPTY": ""},
		Nodes:      []string{"node-b", "node-a"},
	},
}

func evaluate(t testing.TB, value any) (any, templating.Diagnostics) {
	t.Helper()
	set, diags := templating.Compile(templating.InstanceLevel, []map[string]any{one(value, nil)})
	if len(diags) > 0 {
		return nil, diags
	}
	objects, diags := set.Render(camera)
	if len(diags) > 0 {
		return nil, diags
	}
	return objects[0].Content["spec"].(map[string]any)["it"], nil
}

func TestRenderDoesNotChangeItsInput(t *testing.T) {
	s, f := archive(t, "language")
	before := fmt.Sprint(s, f)
	set := mustCompile(t, templating.InstanceLevel, s.InstanceBrokerResources)
	first := asJSON(t, set, f.values(f.Instances[0]))
	if after := fmt.Sprint(s, f); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}

	objects, _ := set.Render(f.values(f.Instances[0]))
	for _, object := range objects {
		overwrite(object.Content) // callers own the objects they get
	}
	for _, template := range s.InstanceBrokerResources {
		overwrite(template) // and the templates they passed
	}
	if again := asJSON(t, set, f.values(f.Instances[0])); again != first {
		t.Errorf("a Set shares memory with its input or output:\n%s\n%s", first, again)
	}
}

func overwrite(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			overwrite(element)
			v[key] = "overwritten"
		}
	case []any:
		for i, element := range v {
			overwrite(element)
			v[i] = "overwritten"
		}
	}
}

func asJSON(t testing.TB, set *templating.Set, values templating.Values) string {
	t.Helper()
	objects, diags := set.Render(values)
	data, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + diags.Error()
}

// TestDeterminism checks that no result depends on the iteration order of a map.
func TestDeterminism(t *testing.T) {
	for _, name := range []string{"language", "diagnostics", "for-each"} {
		s, f := archive(t, name)
		var first string
		for i := range 50 {
			got := asJSON(t, mustCompile(t, templating.InstanceLevel, s.InstanceBrokerResources), f.values(f.Instances[0]))
			got += asJSON(t, mustCompile(t, templating.ConfigurationLevel, s.ConfigurationBrokerResources), f.group())
			if i == 0 {
				first = got
			}
			if got != first {
				t.Fatalf("%s: run %d differs\n%s\n%s", name, i, first, got)
			}
		}
	}
}

// TestConcurrentRender renders concurrently, for the race detector.
func TestConcurrentRender(t *testing.T) {
	s, f := archive(t, "language")
	set := mustCompile(t, templating.InstanceLevel, s.InstanceBrokerResources)
	group := mustCompile(t, templating.ConfigurationLevel, s.ConfigurationBrokerResources)
	want, wantGroup := asJSON(t, set, f.values(f.Instances[0])), asJSON(t, group, f.group())
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for range 50 {
				if asJSON(t, set, f.values(f.Instances[0])) != want || asJSON(t, group, f.group()) != wantGroup {
					t.Error("concurrent renders influence each other")
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestDeepCopy checks that apimachinery can copy Content: it panics on int.
func TestDeepCopy(t *testing.T) {
	s, f := archive(t, "language")
	objects, _ := mustCompile(t, templating.InstanceLevel, s.InstanceBrokerResources).Render(f.values(f.Instances[0]))
	s.InstanceBrokerResources = []map[string]any{
		one(map[string]any{"int": 1, "int32": int32(1), "float32": float32(1), "number": json.Number("7"), "uint": uint64(8)}, nil),
	}
	more, _ := mustCompile(t, templating.InstanceLevel, s.InstanceBrokerResources).Render(f.values(f.Instances[0]))
	for _, object := range append(objects, more...) {
		if diff := cmp.Diff(object.Content, runtime.DeepCopyJSON(object.Content)); diff != "" {
			t.Errorf("a copy differs: -original +copy\n%s", diff)
		}
	}
}

func TestSet(t *testing.T) {
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{
		{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "{{ INSTANCE_PROPERTIES.NAME }}"}},
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": `{{ get INSTANCE_PROPERTIES "a-b" }}`}},
		{
			"apiVersion": "v1",
			"kind":       "Service",
			"metadata":   map[string]any{"name": `{{ index INSTANCE_PROPERTIES "a/b" }}{{ if hasKey INSTANCE_PROPERTIES "H" }}{{ end }}`},
		},
		{
			"apiVersion": "v1",
			"kind":       "Service",
			"metadata": map[string]any{
				"name": `{{ with INSTANCE_PROPERTIES }}{{ .DOT }}{{ with .INNER }}{{ . }}{{ end }}{{ end }}` +
					`{{ $p := INSTANCE_PROPERTIES }}{{ $p.VAR }}{{ range $p }}{{ . }}{{ end }}`,
			},
		},
	})
	if got, want := set.Len(), 4; got != want {
		t.Errorf("Len is %d, want %d", got, want)
	}
	if diff := cmp.Diff([]string{"DOT", "H", "INNER", "NAME", "VAR", "a-b", "a/b"}, set.PropertyKeys()); diff != "" {
		t.Errorf("PropertyKeys: -want +got\n%s", diff)
	}
	want := []schema.GroupVersionKind{{Version: "v1", Kind: "Service"}, {Group: "apps", Version: "v1", Kind: "Deployment"}}
	if diff := cmp.Diff(want, set.Kinds()); diff != "" {
		t.Errorf("Kinds: -want +got\n%s", diff)
	}
	var none *templating.Set
	if objects, diags := none.Render(
		camera,
	); none.Len() != 0 || objects != nil || diags != nil || none.Kinds() != nil ||
		none.PropertyKeys() != nil {
		t.Error("a nil Set is not an empty list")
	}
}

// TestSelectors checks which objects LABEL_SELECTOR matches: those of the Instance, and
// at configuration level those of all Instances, but not those of the group.
func TestSelectors(t *testing.T) {
	deployment := func(name string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}
	}
	service := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"selector": "{{ LABEL_SELECTOR }}"}}
	other := camera
	other.Instance.Name = "cam-a19705"
	pods, selectors := map[string]labels.Set{}, map[string]labels.Selector{}
	for name, at := range map[string]struct {
		level  templating.Level
		values templating.Values
	}{
		"device":  {templating.InstanceLevel, camera},
		"another": {templating.InstanceLevel, other},
		"group":   {templating.ConfigurationLevel, camera},
	} {
		objects, diags := mustCompile(t, at.level, []map[string]any{deployment(name), service}).Render(at.values)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		pods[name] = textsAt(t, objects[0].Content, "spec", "template", "metadata", "labels")
		selectors[name] = labels.SelectorFromSet(textsAt(t, objects[1].Content, "spec", "selector"))
	}
	for name, want := range map[string][]string{
		"device": {"device"}, "another": {"another"}, "group": {"another", "device"},
	} {
		var got []string
		for _, pod := range slices.Sorted(maps.Keys(pods)) {
			if selectors[name].Matches(pods[pod]) {
				got = append(got, pod)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s selects %s, which matches the Pods of %q, want %q", name, selectors[name], got, want)
		}
	}
}

// textsAt returns the map of strings at a path of an object.
func textsAt(t *testing.T, object map[string]any, path ...string) map[string]string {
	t.Helper()
	texts, _, err := unstructured.NestedStringMap(object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestOldNameOfAdopt checks that the old value of akri.sh/on-conflict means the same, also
// where a template is judged before it is compiled.
func TestOldNameOfAdopt(t *testing.T) {
	for text, want := range map[string]templating.OnConflict{
		"take": templating.ConflictAdopt, "adopt": templating.ConflictAdopt, "skip": templating.ConflictSkip,
	} {
		template := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "x", "annotations": map[string]any{"akri.sh/on-conflict": text},
		}}
		if got := templating.OnConflictOf(template); got != want {
			t.Errorf("%s as written is %q, want %q", text, got, want)
		}
		if got := mustCompile(t, templating.InstanceLevel, []map[string]any{template}).Directives(0).OnConflict; got != want {
			t.Errorf("%s compiled is %q, want %q", text, got, want)
		}
	}
}

// TestWorkloadLabels checks that LABEL_SELECTOR matches the Pods of workloads.
func TestWorkloadLabels(t *testing.T) {
	for _, kind := range []string{
		"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "apps/v1 ReplicaSet",
		"v1 ReplicationController", "batch/v1 Job", "batch/v1 CronJob", "example.com/v1 Deployment",
	} {
		t.Run(kind, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(kind, " ")
			pods := map[string]any{"spec": map[string]any{}}
			workload := map[string]any{"template": pods}
			if kind == "CronJob" {
				workload = map[string]any{"jobTemplate": map[string]any{"spec": workload}}
			}
			set := mustCompile(t, templating.InstanceLevel, []map[string]any{{
				"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x"}, "spec": workload,
			}})
			objects, diags := set.Render(camera)
			if err := diags.Err(); err != nil {
				t.Fatal(err)
			}
			s := objects[0].Content["spec"].(map[string]any)
			if kind == "CronJob" {
				s = s["jobTemplate"].(map[string]any)["spec"].(map[string]any)
			}
			got := s["template"].(map[string]any)["metadata"]
			var want any = map[string]any{"labels": map[string]any{
				"akri.sh/configuration": "cam", "akri.sh/instance": "cam-8120fe", "akri.sh/level": "instance",
			}}
			if strings.HasPrefix(apiVersion, "example") {
				want = nil // a custom kind: its fields are unknown
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("metadata of the Pods: -want +got\n%s", diff)
			}
		})
	}
}
