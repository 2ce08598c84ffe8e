package sbom

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// read returns the program akri-discovery, with a license for everything, and the paths
// of its modules with versions.
func read(t *testing.T) (p Program, executable string, modules []string) {
	t.Helper()
	executable = filepath.Join(t.TempDir(), "akri-discovery")
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", executable, "./cmd/akri-discovery"}
	build := exec.CommandContext(t.Context(), "go", arguments...)
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	licenses := map[string][]string{"std": {"BSD-3-Clause"}, "akri.sh/akri": {"Apache-2.0"}}
	for _, m := range info.Deps {
		licenses[m.Path] = []string{"Apache-2.0", "BSD-3-Clause"}
		modules = append(modules, m.Path+"@"+m.Version)
	}
	p = Program{Name: "akri-discovery", Version: "v1.2.3-4-gabcdef0", Platform: "linux/arm/v7", Created: time.Unix(1_800_000_000, 0)}
	if p, err = Read(executable, p, licenses); err != nil {
		t.Fatal(err)
	}
	modules = append(modules, "akri-discovery@"+p.Version, "std@"+strings.TrimPrefix(info.GoVersion, "go"))
	slices.Sort(modules)
	return p, executable, modules
}

func TestDocuments(t *testing.T) {
	p, executable, modules := read(t)
	t.Run("SPDX", func(t *testing.T) {
		text, err := p.SPDX()
		if err != nil {
			t.Fatal(err)
		}
		document, err := spdxjson.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := spdxlib.ValidateDocument(document); err != nil {
			t.Error(err)
		}
		described, err := spdxlib.GetDescribedPackageIDs(document)
		if err != nil || len(described) != 1 || described[0] != "Module-akri.sh-akri" {
			t.Errorf("the document describes %q: %v", described, err)
		}
		var names []string
		ids := map[string]bool{}
		for _, part := range document.Packages {
			names = append(names, part.PackageName+"@"+part.PackageVersion)
			ids[string(part.PackageSPDXIdentifier)] = true
			if part.FilesAnalyzed || part.PackageLicenseConcluded == "" || len(part.PackageExternalReferences) != 1 {
				t.Errorf("%+v is incomplete", part)
			}
		}
		if slices.Sort(names); !slices.Equal(names, modules) || len(ids) != len(modules) {
			t.Errorf("the packages are %q with %d identifiers, want %q", names, len(ids), modules)
		}
		if got := document.CreationInfo.Created; got != "2027-01-15T08:00:00Z" {
			t.Errorf("it was created at %s", got)
		}
	})
	t.Run("CycloneDX", func(t *testing.T) {
		text, err := p.CycloneDX()
		if err != nil {
			t.Fatal(err)
		}
		var bom cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		main := bom.Metadata.Component
		names := []string{main.Name + "@" + main.Version}
		for _, c := range *bom.Components {
			names = append(names, c.Name+"@"+c.Version)
			if c.Licenses == nil || !strings.HasPrefix(c.PackageURL, "pkg:golang/") {
				t.Errorf("%+v is incomplete", c)
			}
		}
		if slices.Sort(names); !slices.Equal(names, modules) {
			t.Errorf("the components are %q, want %q", names, modules)
		}
		if want := "pkg:golang/akri.sh/akri@v1.2.3-4-gabcdef0#cmd/akri-discovery"; main.PackageURL != want {
			t.Errorf("the package URL is %s, want %s", main.PackageURL, want)
		}
		if bom.SpecVersion != cyclonedx.SpecVersion1_6 || !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") {
			t.Errorf("version %s, serial number %s", bom.SpecVersion, bom.SerialNumber)
		}
	})
	if _, err := Read(executable, Program{Name: "akri-discovery"}, map[string][]string{"akri.sh/akri": {"Apache-2.0"}}); err == nil {
		t.Error("a program with modules of unknown license: got no error")
	}
}

func TestNamespacesDiffer(t *testing.T) {
	seen := map[string]string{}
	for name, p := range map[string]Program{
		"one":              {Name: "a", Version: "v1", Platform: "linux/arm64", SHA256: "1"},
		"another program":  {Name: "b", Version: "v1", Platform: "linux/arm64", SHA256: "1"},
		"another version":  {Name: "a", Version: "v2", Platform: "linux/arm64", SHA256: "1"},
		"another platform": {Name: "a", Version: "v1", Platform: "linux/amd64", SHA256: "1"},
		"another content":  {Name: "a", Version: "v1", Platform: "linux/arm64", SHA256: "2"},
	} {
		if other, found := seen[p.namespace()]; found {
			t.Errorf("%s and %s have the namespace %s", name, other, p.namespace())
		}
		seen[p.namespace()] = name
	}
}
