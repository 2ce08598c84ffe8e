package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// Program is what a bill of materials is about.
type Program struct {
	// Name is the name of the program, such as akri-agent, and Package that of its
	// package in the main module, such as cmd/akri-agent.
	Name, Package string
	// Version is that of the main module, and Platform such as linux/arm64.
	Version, Platform string
	// Created is the time in the documents.
	Created time.Time
	// SHA256 is the checksum of the executable, in hexadecimal digits.
	SHA256 string
	// Main is the main module, and Parts are Go itself and the modules that are linked
	// into the program.
	Main  Module
	Parts []Module
}

// Module is a Go module, or Go itself.
type Module struct {
	Path, Version string
	// Sum is its checksum in go.sum. It is empty for the main module and for Go.
	Sum string
	// License is an SPDX license expression.
	License string
}

// Read completes a program, which has a name, a version, a platform and a time, with what
// its executable says. The map has the licenses of modules by path.
func Read(executable string, p Program, licenses map[string][]string) (Program, error) {
	content, err := os.ReadFile(executable)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(content)
	p.SHA256 = hex.EncodeToString(sum[:])
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		return p, err
	}
	p.Package = strings.TrimPrefix(info.Path, info.Main.Path+"/")
	p.Main = Module{Path: info.Main.Path, Version: p.Version}
	p.Parts = []Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		p.Parts = append(p.Parts, Module{Path: d.Path, Version: d.Version, Sum: d.Sum})
	}
	return p, p.license(licenses)
}

// Expression returns the license expression of a module to which all these licenses apply.
func Expression(licenses []string) string { return strings.Join(licenses, " AND ") }

// license sets the licenses of all modules.
func (p *Program) license(licenses map[string][]string) error {
	set := func(m *Module) error {
		m.License = Expression(licenses[m.Path])
		if m.License == "" {
			return fmt.Errorf("%s contains %s, whose license is not known", p.Name, m.Path)
		}
		return nil
	}
	if err := set(&p.Main); err != nil {
		return err
	}
	for i := range p.Parts {
		if err := set(&p.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// namespace is different for each document with a different content.
func (p Program) namespace() string {
	return "https://" + p.Main.Path + "/spdx/" + p.Name + "/" + url.PathEscape(p.Version) + "/" + p.Platform + "/" + p.SHA256
}

// purl returns the package URL of a module; see https://github.com/package-url/purl-spec.
func (m Module) purl() string {
	return "pkg:golang/" + strings.ToLower(m.Path) + "@" + url.QueryEscape(m.Version)
}
