package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"akri.sh/akri/templating/source"
)

// Names of the files of a case.
const (
	configurationFile = "configuration.yaml"
	instancesFile     = "instances.yaml"
	ExpectedFile      = "expected.yaml"
)

// Result is the result of a case.
type Result struct {
	Dir string
	// Documents are the Configuration and the Instances of the case, as they are written.
	Documents []*source.Document
	Got       []byte // the rendered output
	Want      []byte // the content of ExpectedFile; nil if it does not exist
}

// Passed reports whether the result is the expected one.
func (r Result) Passed() bool { return r.Want != nil && slices.Equal(r.Got, r.Want) }

// Find returns the directories of fsys that contain a case, sorted.
func Find(fsys fs.FS) ([]string, error) {
	var dirs []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Base(name) == configurationFile {
			dirs = append(dirs, path.Dir(name))
		}
		return err
	})
	slices.Sort(dirs)
	return dirs, err
}

// Run renders the case in a directory. An error means that it could not be read;
// mistakes in its templates are part of the result.
func Run(fsys fs.FS, dir string) (Result, error) {
	r := Result{Dir: dir}
	documents, err := read(fsys, path.Join(dir, configurationFile), configurationFile)
	if err != nil {
		return r, err
	}
	instances, err := read(fsys, path.Join(dir, instancesFile), instancesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Want, err = fs.ReadFile(fsys, path.Join(dir, ExpectedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Documents = append(documents, instances...)
	in, mistakes := Load(r.Documents, Options{})
	if in != nil {
		r.Got, mistakes = in.Render()
	}
	for _, mistake := range mistakes {
		message := mistake.Error()
		if mistake.For != "" {
			message = mistake.For + ": " + message
		}
		r.Got = fmt.Appendf(r.Got, "# error: %s\n", message)
	}
	return r, nil
}

// read parses a file. Positions have the short name, so that they do not depend on
// the directory.
func read(fsys fs.FS, file, short string) ([]*source.Document, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	return source.Parse(short, data)
}
