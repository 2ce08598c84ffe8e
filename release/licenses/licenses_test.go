package licenses

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
)

func TestOf(t *testing.T) {
	modules, err := Of(t.Context(), "../..", "./cmd/akri-discovery", []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Module{}
	for _, m := range modules {
		found[m.Path] = m
	}
	for path, want := range map[string][]string{
		Go:                                    {"BSD-3-Clause"},
		"akri.sh/akri":                        {"Apache-2.0"},
		"github.com/eclipse/paho.mqtt.golang": {"BSD-3-Clause"},
		"google.golang.org/grpc":              {"Apache-2.0"},
	} {
		if got := found[path].Licenses; !slices.Equal(got, want) {
			t.Errorf("the licenses of %s are %q, want %q", path, got, want)
		}
		if len(found[path].Files) == 0 {
			t.Errorf("%s has no license file", path)
		}
	}
	if files := found["google.golang.org/grpc"].Files; files["NOTICE.txt"] == "" {
		t.Errorf("the notice is missing in %q", slices.Sorted(maps.Keys(files)))
	}
	if files := found["github.com/eclipse/paho.mqtt.golang"].Files; files["edl-v10"] == "" {
		t.Errorf("the license that was chosen is missing in %q", slices.Sorted(maps.Keys(files)))
	}
	if _, l := found["k8s.io/client-go"]; l {
		t.Error("a module that is not linked is listed")
	}
}

func TestIdentify(t *testing.T) {
	text := func(file string) string {
		content, err := assets.ReadLicenseFile("License/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	for name, test := range map[string]struct {
		text, want, problem string
	}{
		"a known license":            {text: text("MIT/pristine.txt"), want: "MIT"},
		"a license with conditions":  {text: text("AGPL-3.0/license.txt"), problem: "is not one of"},
		"an unknown license":         {text: "All rights reserved. Ask us.", problem: "is not a known license"},
		"no license file whatsoever": {problem: "no license was found"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Module{Path: "example.com/m", Files: map[string]string{}}
			if test.text != "" {
				m.Files["LICENSE"] = filepath.Join(t.TempDir(), "LICENSE")
				if err := os.WriteFile(m.Files["LICENSE"], []byte(test.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := m.identify()
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Fatalf("the error is %v, want %q", err, test.problem)
			}
			if got := strings.Join(m.Licenses, " "); err == nil && got != test.want {
				t.Errorf("the licenses are %q, want %q", got, test.want)
			}
		})
	}
}
