package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/release/images"
)

// checkKrew checks that a manifest meets the rules of krew.
func checkKrew(plugin krewPlugin) (problems []string) {
	expect := func(ok bool, what string) {
		if !ok {
			problems = append(problems, what)
		}
	}
	expect(plugin.APIVersion == "krew.googlecontainertools.github.com/v1alpha2" && plugin.Kind == "Plugin", "apiVersion or kind")
	expect(regexp.MustCompile(`^[\w-]+$`).MatchString(plugin.Metadata.Name), "name")
	expect(plugin.Metadata.Name+".yaml" == krewFile, "the file's name is that of the plugin")
	expect(regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(plugin.Spec.Version), "version")
	short := plugin.Spec.ShortDescription
	expect(short != "" && len(short) <= 50 && !strings.ContainsAny(short, "\r\n") && !strings.HasSuffix(short, "."), "shortDescription")
	expect(len(plugin.Spec.Platforms) > 0, "platforms")
	seen := map[string]bool{}
	for _, platform := range plugin.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		name := labels["os"] + "/" + labels["arch"]
		expect(len(labels) == 2 && labels["os"] != "" && labels["arch"] != "" && !seen[name], name+": selector")
		seen[name] = true
		expect(strings.HasPrefix(platform.URI, "https://") && strings.HasSuffix(platform.URI, ".tar.gz"), name+": uri")
		expect(regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(platform.SHA256), name+": sha256")
		expect((labels["os"] == "windows") == strings.HasSuffix(platform.Bin, ".exe"), name+": bin")
		for _, needed := range []string{platform.Bin, "LICENSE"} {
			expect(slices.Contains(platform.Files, krewMovement{needed, "."}), name+": "+needed+" in files")
		}
		for _, file := range platform.Files {
			expect(file.From != "" && file.To != "", name+": files")
		}
	}
	return problems
}

func TestKrewOfAllPlatforms(t *testing.T) {
	o := Options{Version: testVersion, Downloads: "https://example.com/download/"}
	var archives []archive
	sums := map[string]string{}
	for i, platform := range archivePlatforms {
		a := archiveOf(plugin.name, o.Version, platform)
		archives, sums[a.name] = append(archives, a), fmt.Sprintf("%064x", i)
	}
	text, err := o.krewManifest(archives, sums)
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if problems := checkKrew(manifest); len(problems) > 0 || len(manifest.Spec.Platforms) != len(archivePlatforms) {
		t.Errorf("%v in\n%s", problems, text)
	}
	manifest.Spec.Platforms[0].SHA256 = ""
	manifest.Spec.Version = "1.2.3"
	if problems := checkKrew(manifest); len(problems) != 2 {
		t.Errorf("the rules find %v", problems)
	}
}

// TestKrewInstall does what krew does to install the plugin, except for the download.
func TestKrewInstall(t *testing.T) {
	clustertest.Full(t)
	o := builtOnce(t)
	text, err := os.ReadFile(filepath.Join(o.Dir, krewFile))
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if problems := checkKrew(manifest); len(problems) > 0 {
		t.Errorf("%v in\n%s", problems, text)
	}
	platform := manifest.Spec.Platforms[0]
	if selected := platform.Selector.MatchLabels["os"] + "/" + platform.Selector.MatchLabels["arch"]; selected != images.Native() {
		t.Fatalf("the platform is %s", selected)
	}
	a, err := os.ReadFile(filepath.Join(o.Dir, path.Base(platform.URI)))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(a); hex.EncodeToString(sum[:]) != platform.SHA256 {
		t.Errorf("the checksum is %x, not %s", sum, platform.SHA256)
	}
	dir, files := t.TempDir(), unpack(t, a)
	for _, movement := range platform.Files {
		if len(files[movement.From]) == 0 {
			t.Errorf("%s is not in the archive", movement.From)
		}
		if err := os.WriteFile(filepath.Join(dir, movement.To, movement.From), files[movement.From], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if line := output(t, filepath.Join(dir, platform.Bin), "--version"); !strings.Contains(line, testVersion+" ") {
		t.Errorf("--version prints %q", line)
	}
}
