package images

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"akri.sh/akri/kubebox/image"
	"akri.sh/akri/release/licenses"
	"akri.sh/akri/release/sbom"
)

// Files of all images.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"

	// rootsFile is one of the files that Go looks for.
	rootsFile = "/etc/ssl/certs/ca-certificates.crt"
	// rootsPackage has the root certificates, and rootsModule is its module.
	rootsPackage = "golang.org/x/crypto/x509roots/fallback/bundle"
	rootsModule  = "golang.org/x/crypto/x509roots/fallback"

	// The bills of materials.
	spdxFile      = "/sbom.spdx.json"
	cycloneDXFile = "/sbom.cdx.json"
)

// described is an image for one platform before it is built.
type described struct {
	image.Image
	bills map[string][]byte // bills of materials by media type
}

// describe returns the image of a compiled program.
func (o Options) describe(ctx context.Context, d Definition, platform string) (described, error) {
	executable := filepath.Join(o.programDir(platform), d.Program)
	modules, err := o.licenses(ctx, d, platform)
	if err != nil {
		return described{}, err
	}
	bills, err := o.bills(executable, d, platform, modules)
	if err != nil {
		return described{}, fmt.Errorf("bill of materials: %w", err)
	}
	files := map[string]string{"/" + d.Program: executable}
	for _, m := range modules {
		for name, file := range m.Files {
			files[path.Join("/licenses", m.Path, name)] = file
		}
	}
	labels := o.labels(d)
	return described{bills: bills, Image: image.Image{
		Name:     o.reference(d),
		Platform: platform,
		Files:    files,
		Contents: map[string][]byte{
			"/etc/passwd": []byte(passwd),
			"/etc/group":  []byte(group),
			rootsFile:     roots(),
			spdxFile:      bills[sbom.SPDXType],
			cycloneDXFile: bills[sbom.CycloneDXType],
		},
		Entrypoint:  []string{"/" + d.Program},
		User:        d.User,
		Labels:      labels,
		Annotations: labels,
		Created:     o.Created,
	}}, nil
}

// licenses returns the modules of an image: those of the program, and at last the one
// with the root certificates.
func (o Options) licenses(ctx context.Context, d Definition, platform string) ([]licenses.Module, error) {
	environment, err := goEnvironment(platform)
	if err != nil {
		return nil, err
	}
	modules, err := licenses.Of(ctx, o.Root, d.pkg(), environment)
	if err != nil {
		return nil, err
	}
	more, err := licenses.Of(ctx, filepath.Join(o.Root, "release"), rootsPackage, environment)
	if err != nil {
		return nil, err
	}
	for _, m := range more {
		if m.Path == rootsModule {
			return append(modules, m), nil
		}
	}
	return nil, fmt.Errorf("the module of %s was not found", rootsPackage)
}

// bills returns the bills of materials of a program by media type.
func (o Options) bills(executable string, d Definition, platform string, modules []licenses.Module) (map[string][]byte, error) {
	known := map[string][]string{}
	for _, m := range modules {
		known[m.Path] = m.Licenses
	}
	empty := sbom.Program{Name: d.Program, Version: o.Version, Platform: platform, Created: o.Created}
	program, err := sbom.Read(executable, empty, known)
	if err != nil {
		return nil, err
	}
	roots := modules[len(modules)-1] // not linked, but in the image
	program.Parts = append(program.Parts, sbom.Module{Path: roots.Path, Version: roots.Version, License: sbom.Expression(roots.Licenses)})
	spdx, err := program.SPDX()
	if err != nil {
		return nil, err
	}
	cycloneDX, err := program.CycloneDX()
	return map[string][]byte{sbom.SPDXType: spdx, sbom.CycloneDXType: cycloneDX}, err
}

// labels returns the labels and annotations of an image; see
// https://github.com/opencontainers/image-spec/blob/main/annotations.md.
func (o Options) labels(d Definition) map[string]string {
	labels := map[string]string{
		"title":       d.Name,
		"description": d.Description,
		"version":     o.Version,
		"revision":    o.Revision,
		"source":      o.Source,
		"url":         "https://akri.sh",
		"vendor":      "Akri",
		"licenses":    "Apache-2.0",
	}
	if !o.Created.IsZero() {
		labels["created"] = o.Created.UTC().Format(time.RFC3339)
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	full := map[string]string{}
	for name, value := range labels {
		full["org.opencontainers.image."+name] = value
	}
	return full
}

// roots returns the root certificates in PEM. Those that are trusted only under
// conditions are left out, because a file cannot express them.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}
