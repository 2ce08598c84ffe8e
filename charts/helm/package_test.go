package helm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"akri.sh/akri/charts/helm"
)

// TestPackage packages the chart twice, and renders the archive.
func TestPackage(t *testing.T) {
	const version = "v1.2.3-4-g0123abc"
	var archives [2][]byte
	var file string
	for i := range archives {
		var err error
		if file, err = helm.Package(version, t.TempDir()); err != nil {
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
	if _, err := helm.Package("", t.TempDir()); err == nil {
		t.Error("packaged without a version")
	}
}
