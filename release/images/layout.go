package images

import (
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations of an image in a layout. They are not part of the image.
const (
	tagAnnotation  = "org.opencontainers.image.ref.name"
	nameAnnotation = "io.containerd.image.name" // containerd's, for what it imports
)

// writeLayout replaces the layout of an image. An incomplete layout never has its name.
func (o Options) writeLayout(d Definition, index v1.ImageIndex, referrers []v1.Image) error {
	dir := filepath.Join(o.Dir, d.Name)
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	path, err := layout.Write(partial, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	annotations := layout.WithAnnotations(map[string]string{tagAnnotation: o.Version, nameAnnotation: o.reference(d)})
	if err := path.AppendIndex(index, annotations); err != nil {
		return err
	}
	for _, referrer := range referrers {
		if err := path.AppendImage(referrer); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}
