package packages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// formats are the formats of packages, as nfpm calls them.
var formats = []string{"deb", "rpm"}

// architectures are nfpm's names of architectures where they differ from ours.
var architectures = map[string]string{"arm/v7": "arm7"}

// writePackages writes the packages of a program for a platform.
func (o Options) writePackages(p packagedProgram, platform string, contents []content) error {
	for _, format := range formats {
		if err := o.writePackage(p, platform, format, contents); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

func (o Options) writePackage(p packagedProgram, platform, format string, contents []content) error {
	info, err := o.info(p, platform, format, contents)
	if err != nil {
		return err
	}
	if err := nfpm.Validate(info); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(o.Dir, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, file), file.Close())
}

// info describes a package to nfpm.
func (o Options) info(p packagedProgram, platform, format string, contents []content) (*nfpm.Info, error) {
	version, err := packageVersion(o.Version)
	if err != nil {
		return nil, err
	}
	architecture := strings.TrimPrefix(platform, "linux/")
	if name, found := architectures[architecture]; found {
		architecture = name
	}
	info := &nfpm.Info{
		Name: p.name, Arch: architecture, Platform: "linux",
		Version: version, VersionSchema: "none", Release: "1",
		Section: "utils", Priority: "optional",
		Maintainer: "Akri <maintainers@akri.sh>", Vendor: "Akri", Homepage: o.Source, License: "Apache-2.0",
		Description: p.summary + "\n" + p.description, MTime: o.Created.UTC(),
		DisableGlobbing: true,
	}
	info.RPM.Summary = p.summary
	info.RPM.BuildHost = "akri.sh" // not the name of this machine
	for _, c := range contents {
		if c.format != "" && c.format != format {
			continue
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: c.source, Destination: c.destination, FileInfo: &files.ContentFileInfo{
				Owner: "root", Group: "root", Mode: c.mode, MTime: o.Created.UTC(),
			},
		})
	}
	return nfpm.WithDefaults(info), nil
}
