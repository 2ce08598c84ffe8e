package convert_test

import (
	"encoding/json"
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
	"akri.sh/akri/templating/convert"
)

var update = flag.Bool("update", false, "rewrite expected output under testdata; read the diff")

type spec struct {
	BrokerSpec struct {
		BrokerPodSpec map[string]any `json:"brokerPodSpec"`
		BrokerJobSpec map[string]any `json:"brokerJobSpec"`
	} `json:"brokerSpec"`
	InstanceServiceSpec      map[string]any `json:"instanceServiceSpec"`
	ConfigurationServiceSpec map[string]any `json:"configurationServiceSpec"`
}

// TestConvert converts the old fields of each archive, renders them for two
// devices, one shared and one not, and compares.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			old := decode(t, archive.Files[0].Data)
			before, _ := json.Marshal(old)
			got := convertAndRender(t, old)
			if after, _ := json.Marshal(old); string(after) != string(before) {
				t.Errorf("the old fields changed from %s to %s", before, after)
			}
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "want.yaml", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(archive.Files[1].Data); got != want {
				t.Errorf("%s\n(go test ./templating/convert -update rewrites it): -want +got\n%s", archive.Comment, cmp.Diff(want, got))
			}
		})
	}
}

func decode(t *testing.T, data []byte) (s spec) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func convertAndRender(t *testing.T, s spec) string {
	t.Helper()
	lists, err := convert.BrokerResources(convert.Fields{
		BrokerPodSpec: s.BrokerSpec.BrokerPodSpec, BrokerJobSpec: s.BrokerSpec.BrokerJobSpec,
		InstanceServiceSpec: s.InstanceServiceSpec, ConfigurationServiceSpec: s.ConfigurationServiceSpec,
	})
	if err != nil {
		return err.Error() + "\n"
	}
	instances := []templating.Instance{
		{Name: "akri-cam-8120fe", Nodes: []string{"node-c.example", "node-a.example", "node-b.example"}, Shared: true},
		{Name: "akri-cam-a19705", Nodes: []string{"node-a.example"}},
	}
	var out strings.Builder
	set, diags := templating.Compile(templating.InstanceLevel, convert.Templates(lists.Instance))
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	for _, instance := range instances {
		out.WriteString("# " + instance.Name + "\n")
		write(t, &out, set, templating.Values{Configuration: "akri-cam", Namespace: "edge", Capacity: 2, Instance: instance}, lists.Instance)
	}
	set, diags = templating.Compile(templating.ConfigurationLevel, convert.Templates(lists.Configuration))
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	out.WriteString("# all\n")
	write(
		t,
		&out,
		set,
		templating.Values{Configuration: "akri-cam", Namespace: "edge", Capacity: 2, Instances: instances},
		lists.Configuration,
	)
	return out.String()
}

func write(t *testing.T, out *strings.Builder, set *templating.Set, values templating.Values, from []convert.Resource) {
	t.Helper()
	objects, diags := set.Render(values)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object.Content)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("--- # " + from[object.Origin.Index].From.String())
		if object.Directives.Once {
			out.WriteString(", once")
		}
		out.WriteString("\n" + string(text))
	}
}
