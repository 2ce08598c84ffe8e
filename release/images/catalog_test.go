package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImagesOfExamples checks that the images that examples name are published, and that make
// example prints them as they are published, with the namespace.
func TestImagesOfExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`image: akri\.sh/([^:]+):dev`).FindAllStringSubmatch(string(text), -1) {
			named[match[1]] = true
			if _, err := Select([]string{match[1]}); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if len(named) < 3 {
		t.Errorf("only the images %v were found", named)
	}
	arguments := []string{"--silent", "-C", "../..", "example", "NAME=opcua", "VERSION=v1", "REGISTRY=r.example/a"}
	output, err := exec.CommandContext(t.Context(), "make", arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{"kind: Namespace\nmetadata: {name: plant}\n---\n", "image: r.example/a/examples/opcua-broker:v1\n"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("make example prints\n%s\nwant it to contain %q", output, want)
		}
	}
}
