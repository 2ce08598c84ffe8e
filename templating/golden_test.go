package templating_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating"
)

var update = flag.Bool("update", false, "rewrite expected output under testdata; read the diff")

// spec is the part of a Configuration that concerns this package.
type spec struct {
	InstanceBrokerResources      []map[string]any `json:"instanceBrokerResources"`
	ConfigurationBrokerResources []map[string]any `json:"configurationBrokerResources"`
}

type fleet struct {
	Configuration string     `json:"configuration"`
	Namespace     string     `json:"namespace"`
	Capacity      int64      `json:"capacity"`
	Instances     []instance `json:"instances"`
}

type instance struct {
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties"`
	Nodes      []string          `json:"nodes"`
	Shared     bool              `json:"shared"`
}

// decode reads YAML as the API server's clients do: whole numbers are int64.
func decode[T any](t testing.TB, data []byte) T {
	t.Helper()
	var value T
	asJSON, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &value)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return value
}

func (f fleet) values(i instance) templating.Values {
	return templating.Values{Configuration: f.Configuration, Namespace: f.Namespace, Capacity: f.Capacity, Instance: templating.Instance(i)}
}

func (f fleet) group() templating.Values {
	v := f.values(instance{})
	for _, i := range f.Instances {
		v.Instances = append(v.Instances, templating.Instance(i))
	}
	return v
}

// TestGolden renders each archive of testdata/render: all Instances in turn, then
// the configuration level.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/render/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string][]byte{}
			for _, f := range archive.Files {
				parts[f.Name] = f.Data
			}
			got := renderAll(t, decode[spec](t, parts["templates.yaml"]), decode[fleet](t, parts["values.yaml"]))
			if *update {
				archive.Files[len(archive.Files)-1] = txtar.File{Name: "want.yaml", Data: []byte(got)}
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(parts["want.yaml"]); got != want {
				t.Errorf("%s\n(go test ./templating -update rewrites it): -want +got\n%s", archive.Comment, cmp.Diff(want, got))
			}
		})
	}
}

func renderAll(t testing.TB, s spec, f fleet) string {
	t.Helper()
	var out strings.Builder
	perInstance, diags := templating.Compile(templating.InstanceLevel, s.InstanceBrokerResources)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	group, diags := templating.Compile(templating.ConfigurationLevel, s.ConfigurationBrokerResources)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Instances {
		out.WriteString("# " + i.Name + "\n")
		write(t, &out, perInstance, f.values(i))
	}
	out.WriteString("# all\n")
	write(t, &out, group, f.group())
	return out.String()
}

func write(t testing.TB, out *strings.Builder, set *templating.Set, values templating.Values) {
	t.Helper()
	objects, diags := set.Render(values)
	for _, object := range objects {
		text, err := yaml.Marshal(object.Content)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("--- # " + object.Origin.String() + directives(object.Directives) + "\n" + string(text))
	}
	for _, d := range diags {
		out.WriteString("! " + d.Error() + "\n")
	}
}

// directives writes those that are not the usual ones.
func directives(d templating.Directives) string {
	var words []string
	add := func(word string, unusual bool) {
		if unusual {
			words = append(words, word)
		}
	}
	add(string(d.OnConflict), d.OnConflict != templating.ConflictFail)
	add(string(d.DeletionPolicy), d.DeletionPolicy != templating.DeletionDelete)
	add("on-immutable "+string(d.OnImmutable), true)
	add("ready when "+d.ReadyWhen.String(), d.ReadyWhen != nil)
	add("once", d.Once)
	return "; " + strings.Join(words, ", ")
}
