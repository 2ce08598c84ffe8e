package cases_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"akri.sh/akri/templating/cases"
)

var update = flag.Bool("update", false, "rewrite expected output under testdata; read the diff")

func TestRun(t *testing.T) {
	fsys := os.DirFS("testdata")
	dirs, err := cases.Find(fsys)
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			r, err := cases.Run(fsys, dir)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", dir, cases.ExpectedFile), r.Got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !r.Passed() {
				t.Errorf("-want +got\n%s", cmp.Diff(string(r.Want), string(r.Got)))
			}
		})
	}
}

// TestUnreadable checks that an incomplete case is an error.
func TestUnreadable(t *testing.T) {
	const configuration = "kind: Configuration\nmetadata: {name: x}\n"
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"nothing": {fstest.MapFS{}, "does not exist"},
		"no YAML": {fstest.MapFS{"configuration.yaml": {Data: []byte("a: [")}}, "configuration.yaml:1"},
		"no YAML, instances": {
			fstest.MapFS{"configuration.yaml": {Data: []byte(configuration)}, "instances.yaml": {Data: []byte("- 1")}},
			"instances.yaml:1: this is not an object",
		},
	} {
		if _, err := cases.Run(tc.files, "."); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, tc.want)
		}
	}
	for name, tc := range map[string]struct{ data, want string }{
		"two Configurations": {configuration + "---\n" + configuration, "two Configurations"},
		"no Configuration":   {"kind: Instance\nmetadata: {name: x}\n", "there is no Configuration"},
		"something else":     {configuration + "---\nkind: Pod\n", `a "Pod" is neither`},
		"a wrong element": {"kind: Configuration\nspec:\n  instanceBrokerResources:\n  - text\n",
			"4:5: spec.instanceBrokerResources[0]: must be an object"},
		"two mistakes": {"kind: Configuration\nspec:\n  capacity: x\n  instanceBrokerResources: [{kind: A}]\n", "apiVersion"},
		"one for all": {"kind: Configuration\nmetadata: {name: c}\nspec:\n  instanceBrokerResources:\n" +
			"  - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n",
			"5:56: instanceBrokerResources[0].metadata.name: the same object is rendered for several Instances"},
		"a wrong type": {"kind: Configuration\nspec: {capacity: many}\n", "configuration.yaml:2:18: spec.capacity: must be a whole number"},
	} {
		r, err := cases.Run(fstest.MapFS{"configuration.yaml": {Data: []byte(tc.data)}}, ".")
		if err != nil || !strings.Contains(string(r.Got), tc.want) {
			t.Errorf("%s: got %s, %v; want %q", name, r.Got, err, tc.want)
		}
	}
}
