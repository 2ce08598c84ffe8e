package images

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// emptyConfig is the configuration of manifests that are not images; see
// https://github.com/opencontainers/image-spec/blob/main/manifest.md.
var emptyConfig = static.NewLayer([]byte("{}"), "application/vnd.oci.empty.v1+json")

// imageReferrer is a document about an image: a manifest that has the image as its subject.
// Registries list the referrers of an image.
type imageReferrer struct {
	manifest []byte
	document v1.Layer
}

// newReferrer returns a document as a referrer of an image.
func newReferrer(subject v1.Descriptor, mediaType string, document []byte, annotations map[string]string) (v1.Image, error) {
	r := imageReferrer{document: static.NewLayer(document, types.MediaType(mediaType))}
	layer, err := partial.Descriptor(r.document)
	if err != nil {
		return nil, err
	}
	config, err := partial.Descriptor(emptyConfig)
	if err != nil {
		return nil, err
	}
	r.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  mediaType,
		Config:        *config,
		Layers:        []v1.Descriptor{*layer},
		Subject:       &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations:   annotations,
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(r)
}

// RawConfigFile returns the content of emptyConfig.
func (imageReferrer) RawConfigFile() ([]byte, error) { return []byte("{}"), nil }

// MediaType returns the media type of the manifest.
func (imageReferrer) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest returns the manifest.
func (r imageReferrer) RawManifest() ([]byte, error) { return r.manifest, nil }

// LayerByDigest returns the document or the configuration.
func (r imageReferrer) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for _, layer := range []v1.Layer{r.document, emptyConfig} {
		if own, err := layer.Digest(); err == nil && own == digest {
			return layer, nil
		}
	}
	return nil, fmt.Errorf("the manifest has no layer %s", digest)
}
