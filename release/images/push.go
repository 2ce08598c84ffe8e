package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push publishes an OCI layout that [Build] wrote, as registry/NAME:VERSION, such as
// registry.example.com/akri/agent:v1.2.3: the image for all platforms, then the documents
// about it, and at last the tag, which therefore never shows an incomplete image. It uses
// the credentials of docker login. It refuses connections without TLS, except to a
// loopback address or if plainHTTP is true. It returns the image's name with its digest.
func Push(ctx context.Context, layoutDir, registry, image string, plainHTTP bool) (string, error) {
	content, err := layout.ImageIndexFromPath(layoutDir)
	if err != nil {
		return "", fmt.Errorf("%w: run make images", err)
	}
	options := []name.Option{name.StrictValidation}
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(registry+"/"+image, options...)
	if err != nil {
		return "", fmt.Errorf("registry %q: %w", registry, err)
	}
	pusher, err := remote.NewPusher(
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(guard{transport: remote.DefaultTransport, plainHTTP: plainHTTP}),
	)
	if err != nil {
		return "", err
	}
	tag, index, err := pushAll(ctx, pusher, repository, content)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", repository, err)
	}
	if err := pusher.Push(ctx, tag, index); err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	digest, err := index.Digest()
	return tag.String() + "@" + digest.String(), err
}

// pushAll pushes everything in a layout by digest. It returns the image for all platforms
// and its tag.
func pushAll(
	ctx context.Context, pusher *remote.Pusher, repository name.Repository, content v1.ImageIndex,
) (tag name.Tag, index v1.ImageIndex, err error) {
	manifest, err := content.IndexManifest()
	if err != nil {
		return tag, nil, err
	}
	for _, descriptor := range manifest.Manifests {
		var part remote.Taggable
		if descriptor.MediaType.IsIndex() {
			index, err = content.ImageIndex(descriptor.Digest)
			part, tag = index, repository.Tag(descriptor.Annotations[tagAnnotation])
		} else {
			part, err = content.Image(descriptor.Digest)
		}
		if err != nil {
			return tag, nil, err
		}
		if err := pusher.Push(ctx, repository.Digest(descriptor.Digest.String()), part); err != nil {
			return tag, nil, err
		}
	}
	if index == nil {
		return tag, nil, errors.New("the layout contains no image: run make images")
	}
	return tag, index, nil
}

// guard refuses requests without TLS, which could contain credentials. The library would
// make them to private addresses.
type guard struct {
	transport http.RoundTripper
	plainHTTP bool
}

// RoundTrip sends the request.
func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !g.plainHTTP && !isLoopback(request.URL) {
		return nil, errors.New("the registry does not use TLS: allow that with --plain-http")
	}
	return g.transport.RoundTrip(request)
}

func isLoopback(u *url.URL) bool {
	if u.Hostname() == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(u.Hostname())
	return err == nil && address.IsLoopback()
}
