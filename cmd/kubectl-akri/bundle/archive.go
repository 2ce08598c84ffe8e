package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// Dir is the directory of all files in the archive.
	Dir = "akri-report"
	// maxBytes bounds the content of an archive before compression.
	maxBytes = 32 << 20
	// errorsFile has what could not be read, and what did not fit.
	errorsFile = "errors.txt"
)

// Bundle collects the files of an archive in memory. It is safe for concurrent use. Its
// zero value is empty.
type Bundle struct {
	Redactor
	mu       sync.Mutex
	files    map[string][]byte
	size     int
	failures []string
}

// AddObject adds an object as YAML. The elements of its path may be names of any kind.
func (b *Bundle) AddObject(object map[string]any, elements ...string) {
	text, err := yaml.Marshal(b.Object(object))
	if err != nil {
		b.Fail(path.Join(elements...), err)
		return
	}
	b.add(fileName(elements)+".yaml", text)
}

// AddText adds a text.
func (b *Bundle) AddText(text []byte, elements ...string) {
	name := fileName(elements)
	if b.fits(name, len(text)) {
		b.add(name, []byte(b.Text(string(text))))
	}
}

// fits reports whether there is room for a file, and records that it is left out if
// there is none.
func (b *Bundle) fits(name string, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size+size > maxBytes {
		b.failures = append(b.failures, name+": left out, because the report has reached its maximum size")
		return false
	}
	return true
}

// unusual matches characters that names of files cannot have everywhere.
var unusual = regexp.MustCompile(`[^A-Za-z0-9._-]`)

func fileName(elements []string) string {
	for i, element := range elements {
		elements[i] = strings.TrimLeft(unusual.ReplaceAllString(element, "_"), ".")
	}
	return path.Join(elements...)
}

func (b *Bundle) add(name string, content []byte) {
	if !b.fits(name, len(content)) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files == nil {
		b.files = map[string][]byte{}
	}
	b.files[name] = content
	b.size += len(content)
}

// Fail records that something could not be read.
func (b *Bundle) Fail(what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, fmt.Sprintf("%s: %v", what, err))
}

// Failures returns how many things could not be read or did not fit.
func (b *Bundle) Failures() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.failures)
}

// Write writes the archive: a compressed tar file with a README and the files in the
// order of their names. created is the time of all files.
func (b *Bundle) Write(to io.Writer, created time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	files := maps.Clone(b.files)
	if files == nil {
		files = map[string][]byte{}
	}
	failures := slices.Clone(b.failures)
	slices.Sort(failures)
	files[errorsFile] = []byte(b.Text(cmp.Or(strings.Join(failures, "\n"), "none") + "\n"))
	files["README.md"] = []byte(readme)
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	scrub := b.scrubber()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := bytes.NewBufferString(scrub.Replace(string(files[name])))
		header := &tar.Header{
			Name: path.Join(Dir, scrub.Replace(name)), Mode: 0o644, Size: int64(content.Len()), ModTime: created.UTC().Truncate(time.Second),
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := io.Copy(archive, content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}
