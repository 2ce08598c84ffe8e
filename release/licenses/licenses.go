package licenses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is a Go module with at least one package that is linked into a program.
type Module struct {
	// Path is the path of the module, or Go for the standard library and runtime.
	Path string
	// Version is the version of the module. Empty for Go and for the main module.
	Version string
	// Licenses are the SPDX identifiers of its licenses, sorted. All of them apply.
	Licenses []string
	// Files maps the names of its license files and notices, relative to the module, to
	// files on this machine.
	Files map[string]string
}

// Go is the path under which the license of Go itself is listed.
const Go = "std"

// allowed are the licenses that linked modules may have: those that ask for no more than
// their text to come with the program.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// chosen has the license that applies to us, where a module offers a choice that its
// license files do not express.
var chosen = map[string]string{
	"github.com/eclipse/paho.mqtt.golang": "BSD-3-Clause", // or EPL-2.0; the Eclipse Distribution License is the former
}

// licenseFile matches the names of license files and notices.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|unlicense|copying|notice|patents|edl-v10)([._-].*)?$`)

// linked is a package in the output of go list.
type linked struct {
	Dir, Root string // Root is that of Go, for packages of the standard library
	Module    *struct{ Path, Version, Dir string }
}

// Of returns the modules of a program, sorted by path. The program is a package, such as
// ./cmd/akri-agent, of the module in the directory root. The environment selects the
// platform; see go help environment.
func Of(ctx context.Context, root, program string, environment []string) ([]Module, error) {
	packages, err := list(ctx, root, program, environment)
	if err != nil {
		return nil, err
	}
	modules := map[string]*Module{}
	for _, p := range packages {
		name, version, top, dir := Go, "", p.Root, p.Root
		if p.Module != nil {
			name, version, top, dir = p.Module.Path, p.Module.Version, p.Module.Dir, p.Dir
		}
		if modules[name] == nil {
			modules[name] = &Module{Path: name, Version: version, Files: map[string]string{}}
		}
		if err := modules[name].collect(top, dir); err != nil {
			return nil, fmt.Errorf("license files of %s: %w", name, err)
		}
	}
	var all []Module
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		if err := m.identify(); err != nil {
			return nil, fmt.Errorf("licenses of %s: %w", name, err)
		}
		all = append(all, *m)
	}
	return all, nil
}

// list returns the packages that are linked into a program.
func list(ctx context.Context, root, program string, environment []string) ([]linked, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Root,Module", program)
	command.Dir = root
	command.Env = append(os.Environ(), environment...)
	output, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, fmt.Errorf("go list %s: %w: %s", program, err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", program, err)
	}
	var packages []linked
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p linked
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", program, err)
		}
		packages = append(packages, p)
	}
}

// collect adds the license files in dir and its parents up to top, the module's directory.
func (m *Module) collect(top, dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !isLicense(entry) {
				continue
			}
			file := filepath.Join(dir, entry.Name())
			name, err := filepath.Rel(top, file)
			if err != nil {
				return err
			}
			m.Files[filepath.ToSlash(name)] = file
		}
		if dir == top || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func isLicense(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && licenseFile.MatchString(entry.Name()) && !strings.HasSuffix(entry.Name(), ".go")
}

// identify sets Licenses.
func (m *Module) identify() error {
	if license, found := chosen[m.Path]; found {
		m.Licenses = []string{license}
		return nil
	}
	found := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		text, err := os.ReadFile(m.Files[name])
		if err != nil {
			return err
		}
		licenses, err := classify(text)
		if err != nil {
			return err
		}
		if len(licenses) == 0 && strings.HasPrefix(strings.ToLower(path.Base(name)), "licen") {
			return fmt.Errorf("%s is not a known license: read it", m.Files[name])
		}
		for _, license := range licenses {
			found[license] = true
		}
	}
	if len(found) == 0 {
		return errors.New("no license was found: ask its authors, or use another module")
	}
	m.Licenses = slices.Sorted(maps.Keys(found))
	for _, license := range m.Licenses {
		if !slices.Contains(allowed, license) {
			return fmt.Errorf("%s is not one of %s: use another module", license, strings.Join(allowed, ", "))
		}
	}
	return nil
}
