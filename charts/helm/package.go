package helm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// released is the time of all files in an archive, so that the same files are the same
// archive.
var released = time.Unix(0, 0)

// SetVersion writes the version of a release of Akri, such as v1.2.3, into a chart: its
// own version, without the v, the tag of the images, and their list for Artifact Hub.
func SetVersion(c *chart.Chart, version string) {
	c.Metadata.Version = strings.TrimPrefix(version, "v")
	c.Metadata.AppVersion = version
	var images strings.Builder
	for _, name := range []string{"controller", "agent", "discovery"} {
		fmt.Fprintf(&images, "- name: %s\n  image: akri.sh/%s:%s\n", name, name, version)
	}
	c.Metadata.Annotations["artifacthub.io/images"] = images.String()
}

// Package writes the archive akri-VERSION.tgz of a release into a directory, and returns
// its path. The same chart and version are the same archive, byte by byte.
func Package(version, dir string) (string, error) {
	if version == "" {
		return "", errors.New("package the chart: no version: use one such as v1.2.3")
	}
	c, err := Load(version)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file, err := chartutil.Save(c, dir)
	if err != nil {
		return "", fmt.Errorf("package the chart with version %s: %w", version, err)
	}
	return file, nil
}
