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

// Image says what to put into an image.
type Image struct {
	// Name is the reference by which pods ask for it, such as
	// "akri.local/agent:dev". Short names mean what they mean elsewhere:
	// "nginx:stable" is docker.io/library/nginx:stable.
	Name string
	// Files are the files of this machine by their absolute path in the image.
	// An executable stays one; all belong to root.
	Files map[string]string
	// Entrypoint is the program to run, with leading arguments.
	Entrypoint []string
	// Env are settings of the form NAME=value.
	Env []string
	// User is the user ID to run as. Empty: root.
	User string
}

// Write makes the image and writes its archive to the file to.
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
	partial := to + ".partial" // the name of a finished archive never belongs to half of one
	if err := tarball.WriteToFile(partial, reference, built); err != nil {
		os.Remove(partial)
		return err
	}
	return os.Rename(partial, to)
}

func (i Image) build() (v1.Image, error) {
	if len(i.Entrypoint) == 0 {
		return nil, errors.New("it needs an entrypoint")
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

// layer writes the files in the order of their names, each after its folders,
// without times or owners.
func layer(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{"/": true, ".": true}
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		if !path.IsAbs(inside) {
			return nil, fmt.Errorf("%s is not an absolute path", inside)
		}
		if err := writeFolders(w, path.Dir(path.Clean(inside)), made); err != nil {
			return nil, err
		}
		if err := writeFile(w, path.Clean(inside), files[inside]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

func writeFolders(w *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := writeFolders(w, path.Dir(dir), made); err != nil {
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
