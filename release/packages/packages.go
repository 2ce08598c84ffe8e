package packages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"akri.sh/akri/release/images"
)

// sumsFile has the checksums of all other files.
const sumsFile = "SHA256SUMS"

// Options are the settings of [Build].
type Options struct {
	// Root is the root directory of the repository.
	Root string
	// Dir is the directory for the results. Empty: bin/packages in the repository.
	Dir string
	// Version is what the programs show with --version, such as v1.2.3.
	Version string
	// Revision is the commit, and Created its time, which all files have.
	Revision string
	Created  time.Time
	// Source is the URL of the repository. Empty: left out.
	Source string
	// Downloads is the URL of the directory that the archives will be in. Empty: there
	// is no manifest for krew, which needs it.
	Downloads string
	// Packages are the platforms of packages, and Archives those of archives. Nil: all.
	Packages, Archives []string
	// Log receives progress. Nil: none.
	Log io.Writer
}

// Platforms of packages and of archives.
var (
	packagePlatforms = []string{"linux/amd64", "linux/arm64", "linux/arm/v7", "linux/riscv64"}
	archivePlatforms = []string{
		"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
	}
)

// Build writes packages, archives, the manifest for krew, and the checksums. It replaces
// what is in the directory, and returns the names of the files, sorted.
func Build(ctx context.Context, o Options) ([]string, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(o.Dir), os.MkdirAll(o.Dir, 0o755)); err != nil {
		return nil, err
	}
	documents := map[string][]content{}
	for _, p := range programs {
		if documents[p.name], err = o.document(ctx, p); err != nil {
			return nil, fmt.Errorf("documents of %s: %w", p.name, err)
		}
	}
	for _, platform := range o.Packages {
		for _, p := range programs {
			contents, err := o.contents(ctx, p, platform)
			if err != nil {
				return nil, fmt.Errorf("%s for %s: %w", p.name, platform, err)
			}
			if err := o.writePackages(p, platform, append(contents, documents[p.name]...)); err != nil {
				return nil, fmt.Errorf("packages of %s for %s: %w", p.name, platform, err)
			}
		}
	}
	var archives []archive
	for _, platform := range o.Archives {
		contents, err := o.contents(ctx, plugin, platform)
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", plugin.name, platform, err)
		}
		a := archiveOf(plugin.name, o.Version, platform)
		if err := o.writeArchive(a, contents); err != nil {
			return nil, err
		}
		archives = append(archives, a)
	}
	return o.finish(archives)
}

func (o Options) complete() (Options, error) {
	if _, err := packageVersion(o.Version); err != nil {
		return o, err
	}
	var err error
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return o, err
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(o.Root, "bin", "packages")
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, err
	}
	if o.Packages == nil {
		o.Packages = packagePlatforms
	}
	if o.Archives == nil {
		o.Archives = archivePlatforms
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o, nil
}

// work is the directory of what the results are made from.
func (o Options) work() string { return o.Dir + ".work" }

// compile builds a program, or finds out that it is built.
func (o Options) compile(ctx context.Context, program, platform string) (string, error) {
	return images.Compile(ctx, images.Options{
		Root: o.Root, Dir: o.work(), Version: o.Version, Revision: o.Revision, Log: o.Log,
	}, program, platform)
}

// finish writes the manifest for krew and the checksums, and returns the names of all
// files.
func (o Options) finish(archives []archive) ([]string, error) {
	sums, err := o.checksums()
	if err != nil {
		return nil, err
	}
	if o.Downloads == "" {
		fmt.Fprintln(o.Log, "packages: no manifest for krew without the URL of the archives")
	} else if err := o.writeKrew(archives, sums); err != nil {
		return nil, err
	}
	if sums, err = o.checksums(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	names := slices.Sorted(maps.Keys(sums))
	for _, name := range names {
		fmt.Fprintf(&text, "%s  %s\n", sums[name], name)
	}
	return append(names, sumsFile), os.WriteFile(filepath.Join(o.Dir, sumsFile), text.Bytes(), 0o644)
}

// checksums returns the SHA-256 sums of the files in the directory.
func (o Options) checksums() (map[string]string, error) {
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, entry := range entries {
		file, err := os.Open(filepath.Join(o.Dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		sums[entry.Name()] = hex.EncodeToString(hash.Sum(nil))
	}
	return sums, nil
}
