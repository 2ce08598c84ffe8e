package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// delivery is a way for images to reach the nodes of a cluster: a registry, or a command
// that loads an archive into the nodes.
type delivery struct {
	registry string
	load     []string // the argument "ARCHIVE" stands for the archive
}

// archiveArgument is replaced in the command of a delivery.
const archiveArgument = "ARCHIVE"

// chooseDelivery returns the way for images to reach the nodes of a site: the registry if
// there is one, otherwise the command of the tool that made the cluster.
func chooseDelivery(s site, registry string, lookPath func(string) (string, error)) (delivery, error) {
	if registry != "" {
		return delivery{registry: strings.TrimSuffix(registry, "/")}, nil
	}
	has := func(program string) bool {
		_, err := lookPath(program)
		return err == nil
	}
	if cluster, ok := strings.CutPrefix(s.Context, "kind-"); ok && has("kind") {
		return delivery{load: []string{"kind", "load", "image-archive", archiveArgument, "--name", cluster}}, nil
	}
	if cluster, ok := strings.CutPrefix(s.Context, "k3d-"); ok && has("k3d") {
		return delivery{load: []string{"k3d", "image", "import", archiveArgument, "--cluster", cluster}}, nil
	}
	if len(s.Nodes) > 0 && s.Nodes[0].Minikube != "" && has("minikube") {
		return delivery{load: []string{"minikube", "image", "load", archiveArgument, "--profile", s.Nodes[0].Minikube}}, nil
	}
	if hostname, err := os.Hostname(); err == nil && len(s.Nodes) == 1 && s.Nodes[0].Hostname == hostname {
		for _, own := range []struct {
			matches bool
			program string
			command []string
		}{
			{strings.Contains(s.Nodes[0].Kubelet, "+k3s"), "k3s", []string{"k3s", "ctr", "--namespace=k8s.io", "images", "import"}},
			{strings.Contains(s.Nodes[0].Kubelet, "+k0s"), "k0s", []string{"k0s", "ctr", "--namespace=k8s.io", "images", "import"}},
			{true, "microk8s", []string{"microk8s", "ctr", "images", "import"}},
			{strings.HasPrefix(s.Nodes[0].Runtime, "containerd://"), "ctr", []string{"ctr", "--namespace=k8s.io", "images", "import"}},
		} {
			if own.matches && has(own.program) {
				return delivery{load: append(own.command, archiveArgument)}, nil
			}
		}
	}
	return delivery{}, errors.New("the nodes need the images: " +
		"add REGISTRY=HOST/PATH, a registry to which you may push, and from which the nodes pull. Without one, " +
		"images can be loaded into clusters of kind, k3d and minikube, " +
		"and into a cluster whose only node is this machine (k3s, k0s, MicroK8s, containerd)")
}

// describe says what deliver does.
func (d delivery) describe(archives int) string {
	if d.registry != "" {
		return fmt.Sprintf("%d images, pushed to %s", archives, d.registry)
	}
	return fmt.Sprintf("%d images, loaded with %q", archives, strings.Join(d.load, " "))
}

// delivered maps the names of images to the references with which nodes find them. It is
// empty if the names have not changed.
type delivered map[string]name.Digest

// deliver brings the images in archives to where the nodes find them.
func (d delivery) deliver(ctx context.Context, archives []string) (delivered, error) {
	names := delivered{}
	for _, archive := range archives {
		if d.registry == "" {
			if err := d.loadArchive(ctx, archive); err != nil {
				return nil, err
			}
			continue
		}
		from, to, err := pushArchive(ctx, archive, d.registry)
		if err != nil {
			return nil, fmt.Errorf("push %s: %w", archive, err)
		}
		logf("pushed %s", to)
		names[from] = to
	}
	return names, nil
}

// loadArchive runs the command for an archive.
func (d delivery) loadArchive(ctx context.Context, archive string) error {
	arguments := make([]string, len(d.load))
	for i, argument := range d.load {
		arguments[i] = strings.ReplaceAll(argument, archiveArgument, archive)
	}
	logf("%s", strings.Join(arguments, " "))
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("load an image: %q: %w", arguments, err)
	}
	return nil
}

// pushArchive pushes the image in an archive to a registry, with the credentials of
// Docker's configuration, and returns its name in the archive and its reference there.
func pushArchive(ctx context.Context, archive, registry string) (from string, to name.Digest, err error) {
	open := tarball.Opener(func() (file io.ReadCloser, err error) { return os.Open(archive) })
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return "", to, err
	}
	if len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
		return "", to, errors.New("the archive does not have one image with one name")
	}
	from = manifest[0].RepoTags[0]
	_, path, _ := strings.Cut(from, "/")
	tag, err := name.NewTag(registry + "/" + path)
	if err != nil {
		return "", to, err
	}
	image, err := tarball.Image(open, nil)
	if err != nil {
		return "", to, err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", to, err
	}
	err = remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	return from, tag.Context().Digest(digest.String()), err
}

// replacements returns the names in manifests, each followed by the reference to use.
func (d delivered) replacements() []string {
	var pairs []string
	for from, to := range d {
		pairs = append(pairs, from, to.String())
	}
	return pairs
}

// values returns the chart's values for the images.
func (d delivered) values() []string {
	var settings []string
	for _, component := range []string{"controller", "agent", "discovery"} {
		to, ok := d["akri.sh/"+component+":dev"]
		if !ok {
			continue
		}
		registry := strings.TrimSuffix(to.Context().Name(), "/"+component)
		settings = append(settings, "image.registry="+registry, "image.digests."+component+"="+to.DigestStr())
	}
	return settings
}
