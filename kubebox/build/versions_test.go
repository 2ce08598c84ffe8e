package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func TestVersionsThatWorkTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		versions Versions
		dir      string
		err      string // the beginning of the error; empty: none
	}{
		"pinned":           {Versions{}, "k8s", ""},
		"another":          {Versions{Kubernetes: "v1.36.3"}, "k8s-v1.36.3", ""},
		"a pre-release":    {Versions{Kubernetes: "v1.38.0-rc.1"}, "k8s-v1.38.0-rc.1", ""},
		"older nodes":      {Versions{Kubelet: "v1.34.4"}, "k8s-kubelet-v1.34.4", ""},
		"both":             {Versions{Kubernetes: "v1.36.3", Kubelet: "v1.34.4"}, "k8s-v1.36.3-kubelet-v1.34.4", ""},
		"the oldest":       {Versions{Kubernetes: "v1.34.0"}, "k8s-v1.34.0", ""},
		"the oldest nodes": {Versions{Kubernetes: "v1.37.0", Kubelet: "v1.34.4"}, "k8s-v1.37.0-kubelet-v1.34.4", ""},
		"newer nodes": {
			Versions{Kubernetes: "v1.35.4", Kubelet: "v1.36.3"}, "",
			"KUBELET: v1.36.3 is newer than the API server, v1.35.4: choose the same or an older version",
		},
		"nodes of long ago": {
			Versions{Kubernetes: "v1.38.0", Kubelet: "v1.34.4"}, "",
			"KUBELET: v1.34.4 is more than 3 minor releases older than the API server, v1.38.0: choose a newer version",
		},
		"too old":       {Versions{Kubernetes: "v1.33.9"}, "", "KUBERNETES: v1.33.9: the oldest version that can be built is v1.34.0"},
		"nodes too old": {Versions{Kubelet: "v1.33.9"}, "", "KUBELET: v1.33.9: the oldest version that can be built is v1.34.0"},
		"no number": {
			Versions{Kubernetes: "v1.99999999999999999999.0"}, "",
			"KUBERNETES: v1.99999999999999999999.0: the oldest version that can be built is v1.34.0",
		},
		"a minor release": {
			Versions{Kubernetes: "v1.36"}, "",
			`KUBERNETES: "v1.36": want a complete version, such as v1.34.0: go list -m -versions k8s.io/kubernetes shows some`,
		},
		"a build":            {Versions{Kubernetes: "v1.36.3+k3s1"}, "", `KUBERNETES: "v1.36.3+k3s1": want a complete version`},
		"another major":      {Versions{Kubernetes: "v2.36.3"}, "", `KUBERNETES: "v2.36.3": want a complete version`},
		"without its letter": {Versions{Kubelet: "1.36.3"}, "", `KUBELET: "1.36.3": want a complete version`},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.versions.validate()
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)):
				t.Errorf("got %v, want an error that begins with %q", err, tc.err)
			case tc.err == "" && tc.versions.dir() != tc.dir:
				t.Errorf("directory %s, want %s", tc.versions.dir(), tc.dir)
			}
		})
	}
}

func TestMissingExecutablesNameTheCommandThatBuildsThem(t *testing.T) {
	t.Setenv(KubernetesVariable, "v1.36.3")
	t.Setenv(KubeletVariable, "v1.34.4")
	err := Check(t.TempDir(), false)
	if err == nil || !strings.HasSuffix(err.Error(), "run make kubernetes KUBERNETES=v1.36.3 KUBELET=v1.34.4") {
		t.Error(err)
	}
}

// upstream is the part of Kubernetes' go.mod that matters.
const upstream = `module k8s.io/kubernetes

go 1.24.0

godebug default=go1.24

require (
	github.com/spf13/cobra v1.9.1
	k8s.io/api v0.0.0
	k8s.io/kubelet v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ./staging/src/k8s.io/kubelet
)
`

func TestGeneratedGoMod(t *testing.T) {
	content, err := goMod("v1.34.4", []byte(upstream))
	if err != nil {
		t.Fatal(err)
	}
	got, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatalf("%v:\n%s", err, content)
	}
	if got.Go.Version != "1.24.0" || len(got.Godebug) != 1 || got.Godebug[0].Value != "go1.24" {
		t.Errorf("not the language version and settings of Kubernetes:\n%s", content)
	}
	if len(got.Require) != 1 || got.Require[0].Mod.String() != "k8s.io/kubernetes@v1.34.4" {
		t.Errorf("does not require exactly Kubernetes:\n%s", content)
	}
	if len(got.Replace) != 2 || got.Replace[1].New.String() != "k8s.io/kubelet@v0.34.4" {
		t.Errorf("staging modules are not of the same release:\n%s", content)
	}
}

func TestGoModOfAnotherLayoutIsRejected(t *testing.T) {
	for upstream, want := range map[string]string{
		"module k8s.io/kubernetes\ngo 1.24.0\n":             "go.mod of k8s.io/kubernetes v1.34.4: no staging modules",
		"module k8s.io/kubernetes\n":                        "go.mod of k8s.io/kubernetes v1.34.4: no go version",
		"module k8s.io/kubernetes\ngo 1.24.0\nrequire (a\n": "go.mod of k8s.io/kubernetes v1.34.4: go.mod:3: ",
	} {
		if _, err := goMod("v1.34.4", []byte(upstream)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", upstream, err, want)
		}
	}
}

// TestPinnedVersionIsThatOfTheModule checks the constant, which programs report.
func TestPinnedVersionIsThatOfTheModule(t *testing.T) {
	versions := requirements(t, "kubernetes")
	if got := versions[kubernetesModule]; got != kubernetesVersion {
		t.Errorf("kubebox/kubernetes/go.mod requires %s, but kubernetesVersion is %s", got, kubernetesVersion)
	}
}

// requirements returns the versions of the modules in a go.mod, relative to this module's
// directory.
func requirements(t *testing.T, module string) map[string]string {
	t.Helper()
	file := filepath.Join("..", module, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range parsed.Replace {
		if _, ok := versions[r.Old.Path]; ok {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions
}
