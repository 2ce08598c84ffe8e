package helm

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Handlers are the directories in config/ of the built-in discovery handlers.
var Handlers = []string{"debug-echo", "http", "mdns", "mqtt", "onvif", "opcua", "udev"}

// Manifests writes what kubectl installs without Helm into a directory of the repository, whose config/ is at the path
// config: for each discovery handler the file install-HANDLER.yaml, which has everything that Akri needs and this
// handler. To install two handlers, apply both files. The images are those of a version, such as v1.2.3, in a
// registry; an empty registry is akri.sh. It returns the names of the files.
func Manifests(config, dir, version, registry string) (files []string, err error) {
	if registry == "" {
		registry = "akri.sh"
	}
	if !registryName.MatchString(registry) {
		return nil, registryError(registry)
	}
	if config, err = filepath.Abs(config); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, handler := range Handlers {
		text, err := manifest(config, dir, handler, version, registry)
		if err != nil {
			return nil, fmt.Errorf("config/%s: %w", handler, err)
		}
		file := filepath.Join(dir, "install-"+handler+".yaml")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// manifest returns the objects of one file.
func manifest(config, dir, handler, version, registry string) ([]byte, error) {
	base, err := os.MkdirTemp(dir, "kustomization-") // there, because kustomize takes only relative paths
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(base)
	kustomization := types.Kustomization{}
	for _, part := range []string{"default", handler} {
		resource, err := filepath.Rel(base, filepath.Join(config, part))
		if err != nil {
			return nil, err
		}
		kustomization.Resources = append(kustomization.Resources, resource)
	}
	for _, image := range imageNames {
		kustomization.Images = append(kustomization.Images, types.Image{
			Name: "akri.sh/" + image, NewName: registry + "/" + image, NewTag: version,
		})
	}
	text, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(base, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), base)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}
