package offline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/source"
	"github.com/spf13/cobra"
)

// stdinName is how positions call what was read from standard input.
const stdinName = "stdin"

// file is a file that was read.
type file struct {
	name      string
	data      []byte
	documents []*source.Document
	broken    error // why it cannot be understood
}

// files are all files of a command, in the order in which they were given.
type files []*file

// readFiles reads files, folders (their YAML and JSON files by name) and, for -,
// standard input. What is not YAML is noted in the file.
func readFiles(streams Streams, names []string) (files, error) {
	var all files
	for _, name := range names {
		paths := []string{name}
		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			if paths, err = manifests(name); err != nil {
				return nil, unreadable(err)
			}
		}
		for _, path := range paths {
			f, err := readFile(streams, path)
			if err != nil {
				return nil, unreadable(err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

func manifests(folder string) ([]string, error) {
	var paths []string
	for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there is no .yaml, .yml or .json file in the folder %s", folder)
	}
	slices.Sort(paths)
	return paths, nil
}

func readFile(streams Streams, name string) (*file, error) {
	f := &file{name: filepath.ToSlash(name)}
	var err error
	if name == "-" {
		f.name = stdinName
		f.data, err = io.ReadAll(streams.In)
	} else {
		f.data, err = os.ReadFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", name)
	} else if err != nil {
		return nil, err
	}
	f.documents, f.broken = source.Parse(f.name, f.data)
	return f, nil
}

// lines are those of the file a position names; none when it is not among them.
func (all files) lines(name string) []string {
	for _, f := range all {
		if f.name == name {
			return strings.Split(string(f.data), "\n")
		}
	}
	return nil
}

// document is a document and the file it is from.
type document struct {
	*source.Document
	file *file
}

// ofKind are the documents of one of our kinds.
func (all files) ofKind(kind string) []document {
	var found []document
	for _, f := range all {
		for _, d := range f.documents {
			if name, _ := d.Object()["kind"].(string); name == kind && ours(d.Object()) {
				found = append(found, document{d, f})
			}
		}
	}
	return found
}

// ours tells a kind of ours from one of the same name in another group.
func ours(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	return apiVersion == "" || strings.HasPrefix(apiVersion, "akri.sh/")
}

func metadataName(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

func configurationName(instance map[string]any) string {
	spec, _ := instance["spec"].(map[string]any)
	name, _ := spec["configurationName"].(string)
	return name
}

// onlyOneStdin refuses to read standard input twice.
func onlyOneStdin(command *cobra.Command, names ...string) error {
	if first := slices.Index(names, "-"); first >= 0 && slices.Contains(names[first+1:], "-") {
		return usage(command, errors.New("standard input can be read once only: write - once"))
	}
	return nil
}

var noDiagnostic templating.Diagnostic

func pathOf(keys ...string) templating.Path {
	var path templating.Path
	for _, key := range keys {
		path = append(path, templating.Key(key))
	}
	return path
}
