package helm_test

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ociserver "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	ociregistry "helm.sh/helm/v4/pkg/registry"

	"akri.sh/akri/charts/helm"
)

// TestPackage packages the chart twice, and renders the archive.
func TestPackage(t *testing.T) {
	const version = "v1.2.3-4-g0123abc"
	var archives [2][]byte
	var file string
	for i := range archives {
		var err error
		if file, err = helm.Package(version, "", "", t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same chart differ")
	}
	if name := filepath.Base(file); name != "akri-1.2.3-4-g0123abc.tgz" {
		t.Errorf("archive %s", name)
	}
	loaded, err := loader.LoadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	akri := release()
	akri.Chart = loaded
	manifest, err := akri.Render(nil)
	if err != nil || !strings.Contains(manifest, "image: akri.sh/agent:"+version+"\n") ||
		!strings.Contains(manifest, `app.kubernetes.io/version: "`+version+`"`) {
		t.Errorf("no image with the version, %v:\n%s", err, manifest)
	}
	if _, err := helm.Package("", "", "", t.TempDir()); err == nil {
		t.Error("packaged without a version")
	}
}

// TestPackageWithRegistry packages two versions of the chart into one directory: only the
// last is left, so bin/akri-*.tgz is one file, and its images are in the registry without
// a value for it.
func TestPackageWithRegistry(t *testing.T) {
	const registry, source = "registry.example.com:5000/akri", "https://git.example/akri"
	dir := t.TempDir()
	other := filepath.Join(dir, "akri-cli.tgz")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1.2.2", "v1.2.3"} {
		if _, err := helm.Package(version, registry, source, dir); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "akri-1.2.3.tgz")
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(files, []string{file, other}) {
		t.Errorf("the directory contains %v, %v", files, err)
	}
	loaded, err := loader.LoadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if images := loaded.Metadata.Annotations["artifacthub.io/images"]; strings.Count(images, registry+"/") != 3 {
		t.Errorf("the images for Artifact Hub are\n%s", images)
	}
	if m := loaded.Metadata; m.Home != source || !slices.Equal(m.Sources, []string{source}) {
		t.Errorf("the chart's home is %q, its sources %v", m.Home, m.Sources)
	}
	akri := release()
	akri.Chart = loaded
	manifest, err := akri.Render(parse(t, "handlers: {udev: {enabled: true}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"controller", "agent", "discovery"} {
		if !strings.Contains(manifest, "image: "+registry+"/"+image+":v1.2.3\n") {
			t.Errorf("the image %s is not in the registry:\n%s", image, manifest)
		}
	}
	if strings.Contains(manifest, "image: akri.sh/") {
		t.Error("an image is not in the registry")
	}
	for _, refused := range []string{"https://registry.example.com/akri", "registry.example.com/akri/", "Registry/Akri", "a b"} {
		if _, err := helm.Package("v1.2.3", refused, "", t.TempDir()); err == nil || !strings.Contains(err.Error(), "use HOST/PATH") {
			t.Errorf("registry %q: %v", refused, err)
		}
	}
}

// TestPush publishes the chart in a registry, twice with the same digest, and pulls it as
// helm does.
func TestPush(t *testing.T) {
	t.Setenv("HELM_CONFIG_HOME", t.TempDir()) // no credentials
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(ociserver.New(ociserver.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	registry := strings.TrimPrefix(server.URL, "http://") + "/owner/akri"
	file, err := helm.Package("v1.2.3", registry, "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := helm.Push(file, registry, false)
	if err != nil || !strings.HasPrefix(first, registry+"/akri:1.2.3@sha256:") {
		t.Fatal(first, err)
	}
	if second, err := helm.Push(file, registry, false); err != nil || second != first {
		t.Errorf("published again: %s, want %s: %v", second, first, err)
	}
	client, err := ociregistry.NewClient(ociregistry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(registry + "/akri:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(pulled.Chart.Data, packaged) {
		t.Errorf("the chart in the registry is not the packaged one: %v", err)
	}
	if !strings.HasSuffix(first, "@"+pulled.Manifest.Digest) {
		t.Errorf("published %s, pulled %s", first, pulled.Manifest.Digest)
	}
	if _, err := helm.Push(file, "", false); err == nil || !strings.Contains(err.Error(), "use HOST/PATH") {
		t.Errorf("pushed without a registry: %v", err)
	}
}
