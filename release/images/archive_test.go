package images

import (
	"bytes"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestTwoVersionsAtTheSameTime writes the archives of two versions at the same time: each has the program of its version,
// although both are compiled into the same directory.
func TestTwoVersionsAtTheSameTime(t *testing.T) {
	versions := [2]string{"v1.2.3-one", "v1.2.3-two"}
	var archives [2][]string
	var failures [2]error
	dir := t.TempDir()
	var builds sync.WaitGroup
	for i, version := range versions {
		o := options(dir)
		o.Version, o.Images = version, []string{"discovery"}
		builds.Go(func() { archives[i], failures[i] = Archive(t.Context(), o) })
	}
	builds.Wait()
	for i, version := range versions {
		if failures[i] != nil {
			t.Fatal(failures[i])
		}
		image, err := tarball.ImageFromPath(archives[i][0], nil)
		if err != nil {
			t.Fatal(err)
		}
		program := filesOf(t, image)["/akri-discovery"]
		if other := versions[1-i]; !bytes.Contains(program, []byte(version)) || bytes.Contains(program, []byte(other)) {
			t.Errorf("%s does not have the program of %s", archives[i][0], version)
		}
	}
}
