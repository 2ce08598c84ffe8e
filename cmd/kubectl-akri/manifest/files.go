package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/templating/source"
)

// stdinName replaces the file name in positions within standard input.
const stdinName = "stdin"

// File is a file that was read.
type File struct {
	Name      string
	Data      []byte
	Documents []*source.Document
	// Err is why the file could not be parsed.
	Err error
}

// Files are all files of a command, in the order in which they were given.
type Files []*File

// ErrNoFile reports that no Configuration was given.
var ErrNoFile = errors.New("no Configuration given: use -f FILE, or -f - for standard input")

// Read reads files, directories (their YAML and JSON files, sorted by name) and,
// for -, standard input. A file that cannot be parsed is returned with its Err set.
func Read(command *cobra.Command, streams cli.Streams, lists ...[]string) (Files, error) {
	names := slices.Concat(lists...)
	if first := slices.Index(names, "-"); first >= 0 && slices.Contains(names[first+1:], "-") {
		return nil, cli.Usage(command, errors.New("standard input can be read only once: use - once"))
	}
	var all Files
	for _, name := range names {
		paths := []string{name}
		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			if paths, err = list(name); err != nil {
				return nil, cli.Failed(err)
			}
		}
		for _, path := range paths {
			f, err := readFile(streams, path)
			if err != nil {
				return nil, cli.Failed(err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// list returns the YAML and JSON files in dir.
func list(dir string) ([]string, error) {
	var paths []string
	for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .yaml, .yml or .json file in directory %s", dir)
	}
	slices.Sort(paths)
	return paths, nil
}

func readFile(streams cli.Streams, name string) (*File, error) {
	f := &File{Name: filepath.ToSlash(name)}
	var err error
	if name == "-" {
		f.Name = stdinName
		f.Data, err = io.ReadAll(streams.In)
	} else {
		f.Data, err = os.ReadFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("file %s does not exist", name)
	} else if err != nil {
		return nil, err
	}
	f.Documents, f.Err = source.Parse(f.Name, f.Data)
	return f, nil
}

// lines returns the lines of the named file, or nil if it is not one of all.
func (all Files) lines(name string) []string {
	for _, f := range all {
		if f.Name == name {
			return strings.Split(string(f.Data), "\n")
		}
	}
	return nil
}

// OfKind returns the documents of a kind of Akri.
func (all Files) OfKind(kind string) []*source.Document {
	var found []*source.Document
	for _, f := range all {
		for _, d := range f.Documents {
			if name, _ := d.Object()["kind"].(string); name == kind && IsAkri(d.Object()) {
				found = append(found, d)
			}
		}
	}
	return found
}

// IsAkri reports whether the apiVersion of an object is Akri's or missing.
func IsAkri(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	return apiVersion == "" || strings.HasPrefix(apiVersion, "akri.sh/")
}
