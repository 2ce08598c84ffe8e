package packages

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"akri.sh/akri/release/images"
	"akri.sh/akri/release/licenses"
)

// licensesFile has the licenses of all that is linked into a program, except Akri's.
const licensesFile = "third-party-licenses.txt"

// content is a file of a package.
type content struct {
	source, destination string
	mode                os.FileMode
	format              string // deb or rpm; empty: both
}

// packagedProgram is a program with packages.
type packagedProgram struct {
	name, summary, description string
	// files are additional files, from the directory files of this package.
	files []content
}

var (
	plugin = packagedProgram{
		name: "kubectl-akri", summary: "kubectl plugin for devices that Akri finds",
		description: "Checks Configurations of Akri before they are applied, shows devices with\n" +
			"their slots and objects, and says why a device is not in use.",
		files: []content{{source: "kubectl_complete-akri", destination: "/usr/bin/kubectl_complete-akri", mode: 0o755}},
	}
	discovery = packagedProgram{
		name: "akri-discovery", summary: "discovery handlers of Akri",
		description: "Finds devices for the agent of Akri on a node of a Kubernetes cluster: udev, ONVIF,\n" +
			"OPC UA, MQTT, mDNS and HTTP. Also checks other discovery handlers.",
		files: []content{{source: "akri-discovery@.service", destination: "/usr/lib/systemd/system/akri-discovery@.service", mode: 0o644}},
	}
	programs = []packagedProgram{plugin, discovery}
)

// contents compiles a program for a platform, and returns its executable and licenses.
func (o Options) contents(ctx context.Context, p packagedProgram, platform string) ([]content, error) {
	binary, err := o.compile(ctx, p.name, platform)
	if err != nil {
		return nil, err
	}
	third, err := o.writeLicenses(ctx, p, platform, filepath.Dir(binary))
	if err != nil {
		return nil, err
	}
	doc := "/usr/share/doc/" + p.name + "/"
	return []content{
		{source: binary, destination: "/usr/bin/" + filepath.Base(binary), mode: 0o755},
		{source: filepath.Join(o.Root, "LICENSE"), destination: doc + "LICENSE", mode: 0o644},
		{source: filepath.Join(o.Root, "LICENSE"), destination: doc + "copyright", mode: 0o644, format: "deb"}, // Debian's name for it
		{source: third, destination: doc + licensesFile, mode: 0o644},
	}, nil
}

// writeLicenses writes the licenses of the modules in a program into a directory.
func (o Options) writeLicenses(ctx context.Context, p packagedProgram, platform, dir string) (string, error) {
	environment, err := images.Environment(platform)
	if err != nil {
		return "", err
	}
	modules, err := licenses.Of(ctx, o.Root, "./cmd/"+p.name, environment)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "Licenses of the Go modules that are linked into %s\n", p.name)
	for _, m := range modules {
		fmt.Fprintf(&text, "\n==== %s %s: %s\n", m.Path, m.Version, strings.Join(m.Licenses, " and "))
		for _, name := range slices.Sorted(maps.Keys(m.Files)) {
			license, err := os.ReadFile(m.Files[name])
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "\n---- %s\n\n%s\n", name, strings.TrimRight(string(license), "\n"))
		}
	}
	file := filepath.Join(dir, p.name+"-"+licensesFile)
	return file, os.WriteFile(file, text.Bytes(), 0o644)
}

// document runs a program on this machine to get its manual pages and completions, and
// returns them with the program's additional files.
func (o Options) document(ctx context.Context, p packagedProgram) ([]content, error) {
	binary, err := o.compile(ctx, p.name, images.Native())
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.work(), "documents", p.name)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	all, err := o.manual(ctx, binary, dir)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct{ shell, destination, format string }{
		{"bash", "/usr/share/bash-completion/completions/" + p.name, ""},
		{"fish", "/usr/share/fish/vendor_completions.d/" + p.name + ".fish", ""},
		{"zsh", "/usr/share/zsh/vendor-completions/_" + p.name, "deb"},
		{"zsh", "/usr/share/zsh/site-functions/_" + p.name, "rpm"},
	} {
		script, err := exec.CommandContext(ctx, binary, "completion", c.shell).Output()
		if err != nil {
			return nil, fmt.Errorf("the completion for %s: %w", c.shell, err)
		}
		file := filepath.Join(dir, "completion."+c.shell)
		if err := os.WriteFile(file, script, 0o644); err != nil {
			return nil, err
		}
		all = append(all, content{file, c.destination, 0o644, c.format})
	}
	for _, c := range p.files {
		c.source = filepath.Join(o.Root, "release", "packages", "files", c.source)
		all = append(all, c)
	}
	return all, nil
}

// manual writes the manual pages of a program into a directory, and compresses them.
func (o Options) manual(ctx context.Context, binary, dir string) ([]content, error) {
	command := exec.CommandContext(ctx, binary, "man", dir)
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(o.Created.Unix(), 10))
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("manual pages: %w: %s", err, output)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return nil, err
	}
	var all []content
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		var compressed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := writer.Write(text); err != nil {
			return nil, err
		}
		if err := writer.Close(); err != nil {
			return nil, err
		}
		if err := os.WriteFile(page+".gz", compressed.Bytes(), 0o644); err != nil {
			return nil, err
		}
		all = append(all, content{page + ".gz", "/usr/share/man/man1/" + filepath.Base(page) + ".gz", 0o644, ""})
	}
	return all, nil
}
