package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/image"
)

// Options are the settings of [Build] and [Archive].
type Options struct {
	// Root is the root directory of the repository.
	Root string
	// Dir is the directory for the results. Empty: bin/images in the repository.
	Dir string
	// Version is what the programs show with --version, and the tag of the images.
	Version string
	// Revision is the commit, and Created its time. Zero: left out.
	Revision string
	Created  time.Time
	// Source is the URL of the repository. Empty: left out.
	Source string
	// Images are names of [All], and Platforms those to build for. Empty: all.
	Images    []string
	Platforms []string
	// Log receives progress. Nil: none.
	Log io.Writer
}

// Built is an image for one platform.
type Built struct {
	Image, Platform string
	// Index is the digest of the image for all platforms, and Digest that of this one.
	Index, Digest v1.Hash
	// Size is what a node downloads, in bytes: compressed layers, configuration and
	// manifest.
	Size int64
}

// Build compiles the programs and writes an OCI layout for each image, in a directory
// with the name of the image.
func Build(ctx context.Context, o Options) ([]Built, error) {
	o, definitions, err := o.complete()
	if err != nil {
		return nil, err
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, platform := range o.Platforms {
		if err := o.compile(ctx, definitions, platform); err != nil {
			return nil, err
		}
	}
	var all []Built
	for _, d := range definitions {
		fmt.Fprintf(o.Log, "images: writing %s\n", o.reference(d))
		built, err := o.build(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", d.Name, err)
		}
		all = append(all, built...)
	}
	return all, nil
}

// Archive compiles the programs for one platform, that of this machine by default, and
// writes their images as archives that containerd, docker and others can load. It returns
// the paths of the archives.
func Archive(ctx context.Context, o Options) ([]string, error) {
	if len(o.Platforms) == 0 {
		o.Platforms = []string{Native()}
	}
	o, definitions, err := o.complete()
	if err != nil {
		return nil, err
	}
	if len(o.Platforms) != 1 {
		return nil, fmt.Errorf("an archive is for one platform, not for %d", len(o.Platforms))
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	platform := o.Platforms[0]
	if err := o.compile(ctx, definitions, platform); err != nil {
		return nil, err
	}
	var archives []string
	for _, d := range definitions {
		ready, err := o.describe(ctx, d, platform)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", d.Name, err)
		}
		archive := o.archive(d, platform)
		if err := image.Write(archive, ready.Image); err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// lock waits until no other process builds in the same directory, and keeps others waiting until the returned function
// is called: it could be another version, with executables of the same names.
func (o Options) lock(ctx context.Context) (unlock func(), err error) {
	return build.Lock(ctx, o.Dir, func() { fmt.Fprintf(o.Log, "images: waiting for another build into %s\n", o.Dir) })
}

// archive returns the path of an image's archive. Each version has its own: they are read after the directory is
// unlocked.
func (o Options) archive(d Definition, platform string) string {
	return filepath.Join(o.Dir, "archives", strings.ReplaceAll(d.Name+"-"+o.Version+"-"+platform, "/", "-")+".tar")
}

// complete fills in defaults and rejects invalid settings.
func (o Options) complete() (Options, []Definition, error) {
	definitions, err := Select(o.Images)
	if err != nil {
		return o, nil, err
	}
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return o, nil, err
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(o.Root, "bin", "images")
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, nil, err
	}
	if _, err := name.NewTag(o.reference(All[0]), name.StrictValidation); err != nil {
		return o, nil, fmt.Errorf("the version %q cannot be a tag: %w", o.Version, err)
	}
	if len(o.Platforms) == 0 {
		o.Platforms = Platforms
	}
	for _, platform := range o.Platforms {
		if !slices.Contains(Platforms, platform) {
			return o, nil, fmt.Errorf("platform %q: choose from %s", platform, strings.Join(Platforms, ", "))
		}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o, definitions, nil
}

// reference returns the full name of an image.
func (o Options) reference(d Definition) string { return Registry + "/" + d.Name + ":" + o.Version }

// build builds an image for all platforms and writes its layout.
func (o Options) build(ctx context.Context, d Definition) ([]Built, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var all []Built
	var referrers []v1.Image
	for _, platform := range o.Platforms {
		ready, err := o.describe(ctx, d, platform)
		if err != nil {
			return nil, err
		}
		built, err := ready.Build()
		if err != nil {
			return nil, err
		}
		config, err := built.ConfigFile()
		if err != nil {
			return nil, err
		}
		subject, err := partial.Descriptor(built)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: config.Platform()}})
		for _, mediaType := range slices.Sorted(maps.Keys(ready.bills)) {
			referrer, err := newReferrer(*subject, mediaType, ready.bills[mediaType], ready.Annotations)
			if err != nil {
				return nil, err
			}
			referrers = append(referrers, referrer)
		}
		size, err := download(built)
		if err != nil {
			return nil, err
		}
		all = append(all, Built{Image: d.Name, Platform: platform, Digest: subject.Digest, Size: size})
	}
	annotated, ok := mutate.Annotations(index, o.labels(d)).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("annotations: the library did not return an index")
	}
	digest, err := annotated.Digest()
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Index = digest
	}
	return all, o.writeLayout(d, annotated, referrers)
}

// download returns the number of bytes that a node downloads for an image.
func download(i v1.Image) (int64, error) {
	manifest, err := i.Manifest()
	if err != nil {
		return 0, err
	}
	size, err := i.Size()
	if err != nil {
		return 0, err
	}
	size += manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}
