package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// stamp is a digest of everything that determines the results of a step.
type stamp string

// inputs lists everything that the results of a step depend on.
type inputs struct {
	dirs []string // their go.mod, go.sum and Go files, without subdirectories
	text []string // flags, versions
}

// stamp digests the inputs, except tests, which are not compiled.
func (in inputs) stamp(goVersion string) (stamp, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s/%s\n%q\n", goVersion, runtime.GOOS, runtime.GOARCH, in.text)
	for _, dir := range in.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		for _, e := range entries { // sorted by name
			name := e.Name()
			source := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
			if e.IsDir() || !source && name != "go.mod" && name != "go.sum" {
				continue
			}
			if err := digest(h, filepath.Join(dir, name)); err != nil {
				return "", err
			}
		}
	}
	return stamp(hex.EncodeToString(h.Sum(nil))), nil
}

func digest(h io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(h, "%s\n", filepath.Base(file))
	_, err = io.Copy(h, f)
	return err
}

// matches reports whether the stamp file holds s and all results exist.
func (s stamp) matches(file string, results []string) bool {
	b, err := os.ReadFile(file)
	if err != nil || string(b) != string(s) {
		return false
	}
	return !slices.ContainsFunc(results, func(r string) bool {
		_, err := os.Stat(r)
		return err != nil
	})
}

func (s stamp) write(file string) error { return os.WriteFile(file, []byte(s), 0o644) }
