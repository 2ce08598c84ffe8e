package cases_test

import (
	"errors"
	"flag"
	"io/fs"
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
		"no YAML, the second document": {
			fstest.MapFS{"configuration.yaml": {Data: []byte(configuration + "---\n- 1\n")}}, "configuration.yaml:3: this is not an object",
		},
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
			"4:5: instanceBrokerResources[0]: the template has no fields"},
		"two mistakes": {"kind: Configuration\nspec:\n  capacity: x\n  instanceBrokerResources: [{kind: A}]\n", "apiVersion"},
		"maps instead of names": {"kind: Configuration\nmetadata: {name: c}\nspec:\n  instanceBrokerResources:\n" +
			"  - {apiVersion: v1, kind: ConfigMap, metadata: {name: {a: b}, namespace: {a: b}}}\n", "metadata.name"},
		"one for all": {"kind: Configuration\nmetadata: {name: c}\nspec:\n  instanceBrokerResources:\n" +
			"  - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n",
			"5:56: instanceBrokerResources[0].metadata.name: the same object is rendered for several Instances"},
	} {
		r, err := cases.Run(fstest.MapFS{"configuration.yaml": {Data: []byte(tc.data)}}, ".")
		if err != nil || !strings.Contains(string(r.Got), tc.want) {
			t.Errorf("%s: got %s, %v; want %q", name, r.Got, err, tc.want)
		}
	}
}

// TestManyTemplates checks that a mistake of a whole list has the position of the list.
func TestManyTemplates(t *testing.T) {
	const template = "  - {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n"
	for _, level := range []string{"instanceBrokerResources", "configurationBrokerResources"} {
		data := "kind: Configuration\nspec:\n  " + level + ":\n" + strings.Repeat(template, 65)
		r, err := cases.Run(fstest.MapFS{"configuration.yaml": {Data: []byte(data)}}, ".")
		want := "# error: configuration.yaml:4:3: " + level + ": too much: templates in one list are limited to 64; " +
			"split the devices or the objects among several Configurations\n"
		if err != nil || string(r.Got) != want {
			t.Errorf("got %s, %v\nwant %s", r.Got, err, want)
		}
	}
}

// TestUnreadableFiles checks that a file that exists but cannot be read is an error, and
// that missing Instances and a missing result are not.
func TestUnreadableFiles(t *testing.T) {
	configuration := &fstest.MapFile{Data: []byte("kind: Configuration\nmetadata: {name: x}\n")}
	dir := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	for _, name := range []string{"instances.yaml", "expected.yaml"} {
		_, err := cases.Run(fstest.MapFS{"configuration.yaml": configuration, name: dir}, ".")
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is a directory: error is %v", name, err)
		}
	}
	r, err := cases.Run(fstest.MapFS{"configuration.yaml": configuration}, ".")
	if err != nil || r.Want != nil || r.Passed() {
		t.Errorf("a case without a result: %v, %v", r, err)
	}
	if _, err := cases.Find(brokenFS{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory that cannot be read: %v", err)
	}
}

// brokenFS is a file system without any permission.
type brokenFS struct{}

func (brokenFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}
