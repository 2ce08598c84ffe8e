package helm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// released is the time of all files in an archive, so that the same files are the same
// archive.
var released = time.Unix(0, 0)

// imageNames are the names of the images that an installation runs.
var imageNames = []string{"controller", "agent", "discovery"}

// SetVersion writes the version of a release of Akri, such as v1.2.3, into a chart: its
// own version, without the v, the tag of the images, and their list for Artifact Hub.
func SetVersion(c *chart.Chart, version string) {
	c.Metadata.Version = strings.TrimPrefix(version, "v")
	c.Metadata.AppVersion = version
	var images strings.Builder
	for _, name := range imageNames {
		fmt.Fprintf(&images, "- name: %s\n  image: %s/%s:%s\n", name, registryOf(c), name, version)
	}
	c.Metadata.Annotations["artifacthub.io/images"] = images.String()
}

// registryOf returns the registry of a chart's images.
func registryOf(c *chart.Chart) string {
	image, _ := c.Values["image"].(Values)
	registry, _ := image["registry"].(string)
	return registry
}

// registryName matches HOST[:PORT]/PATH, as a registry of images has it.
var registryName = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

func registryError(registry string) error {
	return fmt.Errorf("registry %q: use HOST/PATH, such as registry.example.com/akri", registry)
}

// SetRegistry makes a registry, such as registry.example.com/akri, the default of a
// chart's image.registry, so that it need not be among the values of a release. Call it
// before [SetVersion].
func SetRegistry(c *chart.Chart, registry string) error {
	if !registryName.MatchString(registry) {
		return registryError(registry)
	}
	image, ok := c.Values["image"].(Values)
	line := "\n  registry: " + registryOf(c) + "\n"
	at := slices.IndexFunc(c.Raw, func(f *common.File) bool {
		return f.Name == chartutil.ValuesfileName && bytes.Count(f.Data, []byte(line)) == 1
	})
	if !ok || at < 0 {
		return fmt.Errorf("chart %s: %s has no image.registry, or more than one", c.Name(), chartutil.ValuesfileName)
	}
	c.Raw[at].Data = bytes.Replace(c.Raw[at].Data, []byte(line), []byte("\n  registry: "+registry+"\n"), 1)
	image["registry"] = registry
	return nil
}

// Package writes the archive akri-VERSION.tgz of a release into a directory, and returns
// its path. It removes archives of other versions there. The registry is where the images
// are; the source's if it is empty. The source is the URL of the repository, which may be
// empty. The same chart and arguments are the same archive, byte by byte.
func Package(version, registry, source, dir string) (string, error) {
	if version == "" {
		return "", errors.New("package the chart: no version: use one such as v1.2.3")
	}
	c, err := Load("")
	if err != nil {
		return "", err
	}
	if registry != "" {
		if err := SetRegistry(c, registry); err != nil {
			return "", fmt.Errorf("package the chart: %w", err)
		}
	}
	SetVersion(c, version)
	if source != "" {
		c.Metadata.Home, c.Metadata.Sources = source, []string{source}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	earlier, err := filepath.Glob(filepath.Join(dir, c.Name()+"-[0-9]*.tgz"))
	if err != nil {
		return "", err
	}
	for _, file := range earlier {
		if err := os.Remove(file); err != nil {
			return "", err
		}
	}
	file, err := chartutil.Save(c, dir)
	if err != nil {
		return "", fmt.Errorf("package the chart with version %s: %w", version, err)
	}
	return file, nil
}
