package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image describes an image.
type Image struct {
	// Name is the reference that Pods use, such as "akri.local/agent:dev". Short
	// names are expanded as usual: "nginx:stable" is docker.io/library/nginx:stable.
	Name string
	// Platform is where the image runs, such as "linux/amd64" or "linux/arm/v7". Empty:
	// Linux on this machine's architecture.
	Platform string
	// Files maps absolute paths in the image to files on this machine. Executables
	// stay executable; root owns all files.
	Files map[string]string
	// Contents maps absolute paths in the image to the contents of files.
	Contents map[string][]byte
	// Entrypoint is the program to run, with leading arguments.
	Entrypoint []string
	// Env are environment variables of the form NAME=value.
	Env []string
	// User is the user ID to run as. Empty: root.
	User string
	// Labels are part of the image's configuration, which container runtimes show.
	Labels map[string]string
	// Annotations are part of the image's manifest, which registries show.
	Annotations map[string]string
	// Created is shown as the time of the build. Zero: none, so that the same files
	// produce the same image at any time.
	Created time.Time
}

// Write builds the image and writes it to the file to, in the format of docker save. If several programs write the
// same file at the same time, it is that of one of them.
func Write(to string, i Image) error {
	reference, err := name.NewTag(i.Name)
	if err != nil {
		return fmt.Errorf("image name: %w", err)
	}
	built, err := i.Build()
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// An incomplete archive never has the final name, and its own name is not that of another program's.
	partial, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.partial")
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name()) // fails if it has the final name
	err = errors.Join(tarball.Write(reference, built, partial), partial.Chmod(0o644), partial.Close())
	if err != nil {
		return err
	}
	return os.Rename(partial.Name(), to)
}

// Build returns the image, in the format of the Open Container Initiative (OCI).
func (i Image) Build() (v1.Image, error) {
	if len(i.Entrypoint) == 0 {
		return nil, errors.New("the entrypoint is missing")
	}
	platform, err := i.platform()
	if err != nil {
		return nil, err
	}
	content, err := i.layer()
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	files, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	with, err := mutate.AppendLayers(base, files)
	if err != nil {
		return nil, err
	}
	config, err := with.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Config = v1.Config{Entrypoint: i.Entrypoint, Env: i.Env, User: i.User, Labels: i.Labels}
	config.Created = v1.Time{Time: i.Created.UTC()}
	if with, err = mutate.ConfigFile(with, config); err != nil || len(i.Annotations) == 0 {
		return with, err
	}
	annotated, ok := mutate.Annotations(with, i.Annotations).(v1.Image)
	if !ok {
		return nil, errors.New("annotations: the library did not return an image")
	}
	return annotated, nil
}

func (i Image) platform() (v1.Platform, error) {
	if i.Platform == "" {
		return v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, nil
	}
	platform, err := v1.ParsePlatform(i.Platform)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("platform: %w", err)
	}
	if platform.OS == "" || platform.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("platform: %q has no architecture: write linux/amd64", i.Platform)
	}
	return *platform, nil
}

// layer returns a tar archive of the files, sorted by path, each after its
// directories, without times or owners.
func (i Image) layer() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	written := map[string]bool{"/": true, ".": true}
	for _, inside := range i.paths() {
		if !path.IsAbs(inside) {
			return nil, fmt.Errorf("%s is not an absolute path", inside)
		}
		content, mode, err := i.file(inside)
		if err != nil {
			return nil, err
		}
		if err := writeDirs(w, path.Dir(path.Clean(inside)), written); err != nil {
			return nil, err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(path.Clean(inside), "/"), Mode: mode, Size: int64(len(content)),
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil { // writes the end of the archive
		return nil, err
	}
	return b.Bytes(), nil
}

// file returns the content and the mode of a file in the image.
func (i Image) file(inside string) (content []byte, mode int64, err error) {
	file, onMachine := i.Files[inside]
	content, given := i.Contents[inside]
	if onMachine && given {
		return nil, 0, fmt.Errorf("%s is in both Files and Contents", inside)
	}
	if given {
		return content, 0o644, nil
	}
	if content, err = os.ReadFile(file); err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, 0, err
	}
	if info.Mode()&0o111 != 0 {
		return content, 0o755, nil
	}
	return content, 0o644, nil
}

// paths returns the paths of all files, sorted.
func (i Image) paths() []string {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(i.Files)), maps.Keys(i.Contents))
	slices.Sort(paths)
	return paths
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
