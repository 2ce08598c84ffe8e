package images

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"akri.sh/akri/release/sbom"
)

// options are those of the images that all tests use.
func options(dir string) Options {
	return Options{
		Root: "../..", Dir: dir, Platforms: []string{"linux/amd64"},
		Version: "v1.2.3", Revision: strings.Repeat("a", 40), Created: time.Unix(1_800_000_000, 0), Source: "https://example.com/akri",
	}
}

// shared is the directory of images that the tests of this package share.
var shared struct {
	sync.Once
	dir   string
	built []Built
	err   error
}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(shared.dir)
	os.Exit(status)
}

// sharedImages builds all images once, for linux/amd64.
func sharedImages(t *testing.T) (dir string, built []Built) {
	t.Helper()
	shared.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "akri-images-"); shared.err == nil {
			shared.built, shared.err = Build(context.Background(), options(shared.dir))
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.dir, shared.built
}

// open returns the image for linux/amd64 in a layout, and the documents that refer to it.
func open(t *testing.T, dir, name string) (index v1.ImageIndex, image v1.Image, referrers []v1.Image) {
	t.Helper()
	content, err := layout.ImageIndexFromPath(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := content.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, descriptor := range manifest.Manifests {
		if i == 0 {
			index, err = content.ImageIndex(descriptor.Digest)
		} else {
			var referrer v1.Image
			referrer, err = content.Image(descriptor.Digest)
			referrers = append(referrers, referrer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	platforms, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if image, err = index.Image(platforms.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	return index, image, referrers
}

// filesOf returns the files in an image by name.
func filesOf(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	files := map[string][]byte{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s can be written by others than root: %+v", header.Name, header)
		}
		if files["/"+header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImagesAreComplete(t *testing.T) {
	dir, _ := sharedImages(t)
	for _, d := range All {
		t.Run(d.Name, func(t *testing.T) {
			index, image, referrers := open(t, dir, d.Name)
			if err := validate.Index(index); err != nil {
				t.Error(err)
			}
			files := filesOf(t, image)
			checkProgram(t, d, image, files)
			checkBills(t, d, image, files, referrers)
			if !x509.NewCertPool().AppendCertsFromPEM(files[rootsFile]) || bytes.Count(files[rootsFile], []byte("BEGIN")) < 100 {
				t.Errorf("%s has %d bytes and too few certificates", rootsFile, len(files[rootsFile]))
			}
			if !bytes.Contains(files["/etc/passwd"], []byte(":"+d.User+":")) {
				t.Errorf("/etc/passwd has no user %s:\n%s", d.User, files["/etc/passwd"])
			}
		})
	}
}

// checkProgram checks the configuration of an image, and that it has the licenses of
// everything that is linked into the program.
func checkProgram(t *testing.T, d Definition, image v1.Image, files map[string][]byte) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != d.User || !slices.Equal(config.Config.Entrypoint, []string{"/" + d.Program}) {
		t.Errorf("the configuration is %+v", config.Config)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"version": "v1.2.3", "revision": strings.Repeat("a", 40), "created": "2027-01-15T08:00:00Z",
		"source": "https://example.com/akri", "title": d.Name, "description": d.Description, "licenses": "Apache-2.0",
	} {
		label = "org.opencontainers.image." + label
		if config.Config.Labels[label] != want || manifest.Annotations[label] != want {
			t.Errorf("%s is %q, and %q as an annotation, want %q", label, config.Config.Labels[label], manifest.Annotations[label], want)
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(files["/"+d.Program]))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool {
			return strings.HasPrefix(name, "/licenses/"+module.Path+"/")
		}) {
			t.Errorf("the license of %s is missing", module.Path)
		}
	}
	for _, name := range []string{"/licenses/std/LICENSE", "/licenses/akri.sh/akri/LICENSE"} {
		if len(files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	for _, setting := range info.Settings {
		if strings.HasPrefix(setting.Key, "vcs") {
			t.Errorf("the program contains %s, which differs between copies of a commit", setting.Key)
		}
	}
}

// checkBills checks that the bills of materials in the image and in its referrers are
// the same.
func checkBills(t *testing.T, d Definition, image v1.Image, files map[string][]byte, referrers []v1.Image) {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{sbom.SPDXType: files[spdxFile], sbom.CycloneDXType: files[cycloneDXFile]}
	for _, referrer := range referrers {
		manifest, err := referrer.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if manifest.Subject == nil || manifest.Subject.Digest != digest {
			t.Errorf("%s refers to %+v, not to the image", manifest.ArtifactType, manifest.Subject)
		}
		if got := document(t, referrer); len(got) == 0 || !bytes.Equal(got, want[manifest.ArtifactType]) {
			t.Errorf("%s of %s is not the document in the image", manifest.ArtifactType, d.Name)
		}
		delete(want, manifest.ArtifactType)
	}
	if len(want) > 0 {
		t.Errorf("there is no referrer of the types %q", slices.Collect(maps.Keys(want)))
	}
}

// document returns the content of a referrer.
func document(t *testing.T, referrer v1.Image) []byte {
	t.Helper()
	layers, err := referrer.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestReproducible builds an image again from a copy of the repository in another
// directory that is not a repository, as a distributor would from a source archive.
func TestReproducible(t *testing.T) {
	dir, built := sharedImages(t)
	root := t.TempDir()
	list := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, but not yet in the index
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-buildvcs=true -ldflags=-w") // what the user has set is ignored
	t.Setenv("GOAMD64", "v2")
	o := options(t.TempDir())
	o.Root, o.Images = root, []string{"discovery"}
	again, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(built, func(b Built) bool { return b.Image == "discovery" })
	if again[0] != built[i] {
		t.Errorf("the same files produced %+v and %+v", built[i], again[0])
	}
	first, second := readAll(t, filepath.Join(dir, "discovery")), readAll(t, filepath.Join(o.Dir, "discovery"))
	if !maps.EqualFunc(first, second, bytes.Equal) {
		t.Error("the layouts differ")
	}
}

// readAll returns the files below a directory by name.
func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestInvalidOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"a version that cannot be a tag": func(o *Options) { o.Version = "v1.2.3+build" },
		"no version":                     func(o *Options) { o.Version = "" },
		"an unknown platform":            func(o *Options) { o.Platforms = []string{"windows/amd64"} },
		"an unknown image":               func(o *Options) { o.Images = []string{"operator"} },
	} {
		o := options(t.TempDir())
		change(&o)
		if _, err := Build(t.Context(), o); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	o := options(t.TempDir())
	o.Platforms = Platforms
	if _, err := Archive(t.Context(), o); err == nil {
		t.Error("an archive for several platforms: got no error")
	}
}
