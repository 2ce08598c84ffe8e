package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image describes an image.
type Image struct {
	// Name is the reference that pods use, such as "akri.local/agent:dev". Short
	// names are expanded as usual: "nginx:stable" is docker.io/library/nginx:stable.
	Name string
	// Files maps absolute paths in the image to files on this machine. Executables
	// stay executable; root owns all files.
	Files map[string]string
	// Entrypoint is the program to run, with leading arguments.
	Entrypoint []string
	// Env are environment variables of the form NAME=value.
	Env []string
	// User is the user ID to run as. Empty: root.
	User string
}

// Write builds the image and writes its archive to the file to.
func Write(to string, i Image) error {
	reference, err := name.NewTag(i.Name)
	if err != nil {
		return fmt.Errorf("image name: %w", err)
	}
	built, err := i.build()
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	partial := to + ".partial" // an incomplete archive never has the final name
	if err := tarball.WriteToFile(partial, reference, built); err != nil {
		os.Remove(partial)
		return err
	}
	return os.Rename(partial, to)
}

func (i Image) build() (v1.Image, error) {
	if len(i.Entrypoint) == 0 {
		return nil, errors.New("the entrypoint is missing")
	}
	content, err := layer(i.Files)
	if err != nil {
		return nil, err
	}
	files, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return nil, err
	}
	with, err := mutate.AppendLayers(empty.Image, files)
	if err != nil {
		return nil, err
	}
	config, err := with.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: i.Entrypoint, Env: i.Env, User: i.User}
	return mutate.ConfigFile(with, config)
}

// layer returns a tar archive of the files, sorted by path, each after its
// directories, without times or owners.
func layer(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	written := map[string]bool{"/": true, ".": true}
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		if !path.IsAbs(inside) {
			return nil, fmt.Errorf("%s is not an absolute path", inside)
		}
		if err := writeDirs(w, path.Dir(path.Clean(inside)), written); err != nil {
			return nil, err
		}
		if err := writeFile(w, path.Clean(inside), files[inside]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// writeDirs writes dir and its parents, except those that are in written.
func writeDirs(w *tar.Writer, dir string, written map[string]bool) error {
	if written[dir] {
		return nil
	}
	written[dir] = true
	if err := writeDirs(w, path.Dir(dir), written); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755})
}

func writeFile(w *tar.Writer, inside, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(inside, "/"), Mode: mode, Size: int64(len(content))}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
