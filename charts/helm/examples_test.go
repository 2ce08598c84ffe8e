package helm_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestExamples installs each Configuration of examples/ with the chart, and compares it
// with the file.
func TestExamples(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../../examples", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		for document := range strings.SplitSeq("\n"+read(t, file), "\n---") {
			var want object
			if yaml.Unmarshal([]byte(document), &want) != nil || want["kind"] != "Configuration" {
				continue
			}
			count++
			metadata := want["metadata"].(object)
			values := object{"spec": want["spec"]}
			for _, key := range []string{"name", "namespace", "labels", "annotations"} {
				if metadata[key] != nil {
					values[key] = metadata[key]
				}
			}
			manifest, err := release().Render(object{"configurations": []any{values}})
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			namespace := metadata["namespace"]
			if namespace == nil {
				namespace = "akri-system"
			}
			got := objects(t, manifest)[fmt.Sprintf("Configuration %v/%v", namespace, metadata["name"])]
			if got == nil || !reflect.DeepEqual(got["spec"], want["spec"]) {
				t.Errorf("%s differs:\n%s", file, difference(t, got, want))
			}
		}
		return nil
	})
	if err != nil || count == 0 {
		t.Errorf("%d Configurations, %v", count, err)
	}
}
