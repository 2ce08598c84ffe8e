package image

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestSameFilesProduceTheSameArchive(t *testing.T) {
	dir := t.TempDir()
	write := func(to string, age time.Duration) []byte {
		t.Helper()
		program, data := filepath.Join(dir, "program"), filepath.Join(dir, "data")
		for file, mode := range map[string]os.FileMode{program: 0o700, data: 0o600} {
			if err := os.WriteFile(file, []byte(filepath.Base(file)), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		err := Write(to, Image{
			Name:       "akri.local/test:1",
			Files:      map[string]string{"/usr/bin/program": program, "/usr/share/data": data},
			Entrypoint: []string{"/usr/bin/program"},
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a := write(filepath.Join(dir, "a.tar"), 0)
	b := write(filepath.Join(dir, "b.tar"), time.Hour)
	if !bytes.Equal(a, b) {
		t.Error("two archives of the same files differ")
	}
}

// TestArchivesAreWhole writes two images to one file at the same time, as two builds do: the file is always one of them.
func TestArchivesAreWhole(t *testing.T) {
	const rounds = 50
	dir := t.TempDir()
	archive := filepath.Join(dir, "agent.tar")
	var whole [2][]byte
	images := [2]Image{}
	for i := range images {
		content := bytes.Repeat([]byte{byte(i)}, 1+i<<18)
		images[i] = Image{Name: "akri.local/agent:1", Contents: map[string][]byte{"/agent": content}, Entrypoint: []string{"/agent"}}
		if err := Write(archive, images[i]); err != nil {
			t.Fatal(err)
		}
		var err error
		if whole[i], err = os.ReadFile(archive); err != nil {
			t.Fatal(err)
		}
	}
	var writers sync.WaitGroup
	for _, each := range images {
		writers.Go(func() {
			for range rounds {
				if err := Write(archive, each); err != nil {
					t.Error(err)
					return
				}
				if got, err := os.ReadFile(archive); err != nil || !bytes.Equal(got, whole[0]) && !bytes.Equal(got, whole[1]) {
					t.Errorf("the archive of %d bytes is none of the two that are written: %v", len(got), err)
					return
				}
			}
		})
	}
	writers.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory contains %v, %v", left, err)
	}
}

func TestImageShowsWhatItIs(t *testing.T) {
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	i := Image{
		Platform:    "linux/arm/v7",
		Contents:    map[string][]byte{"/etc/passwd": []byte("root:x:0:0")},
		Entrypoint:  []string{"/program"},
		User:        "65532",
		Labels:      map[string]string{"org.opencontainers.image.title": "label"},
		Annotations: map[string]string{"org.opencontainers.image.title": "annotation"},
		Created:     created,
	}
	built, err := i.Build()
	if err != nil {
		t.Fatal(err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := built.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Platform().String(); got != i.Platform {
		t.Errorf("the platform is %s", got)
	}
	if config.Config.User != i.User || !config.Created.Equal(created) || !maps.Equal(config.Config.Labels, i.Labels) {
		t.Errorf("the configuration is %+v", config)
	}
	if !maps.Equal(manifest.Annotations, i.Annotations) || manifest.MediaType != types.OCIManifestSchema1 {
		t.Errorf("the manifest is %+v", manifest)
	}
	files := mutate.Extract(built)
	defer files.Close()
	archive := tar.NewReader(files)
	var names []string
	for header, err := archive.Next(); err != io.EOF; header, err = archive.Next() {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if want := []string{"etc", "etc/passwd"}; !slices.Equal(names, want) {
		t.Errorf("the image contains %q, want %q", names, want)
	}
}

func TestLayersAreComplete(t *testing.T) {
	content, err := Image{Contents: map[string][]byte{"/etc/passwd": []byte("root:x:0:0")}}.layer()
	if err != nil {
		t.Fatal(err)
	}
	// Go reads an archive without its end, but other programs do not.
	if end := make([]byte, 1024); len(content)%512 != 0 || !bytes.HasSuffix(content, end) {
		t.Errorf("the archive has %d bytes, and does not end with two empty blocks", len(content))
	}
}
