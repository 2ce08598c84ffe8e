package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// nftDir is the subdirectory of the results with the program nft and its libraries, if
// they come from Debian packages. The program cmd/nft runs it.
const nftDir = "nftables"

// nftables returns the step that provides nft, which kube-proxy runs. If it is installed
// on this machine, the result is a link to it. Otherwise it comes from Debian's packages,
// unpacked but not installed.
//
// Without nft, clusters do not route Services, and say so; so the step does not fail, and
// the next build tries again.
func (b *builder) nftables() step {
	g := goBuild{dir: b.module, sources: []string{filepath.Join(b.module, "cmd", "nft")}}
	return step{
		name:    "nftables",
		title:   "nftables",
		inputs:  g.inputs(),
		results: []string{"nft"},
		run: func(ctx context.Context) error {
			if err := os.RemoveAll(b.result("nft")); err != nil {
				return err
			}
			for _, name := range []string{"nft", "/usr/sbin/nft"} { // not on every user's PATH
				if path, err := exec.LookPath(name); err == nil {
					return os.Symlink(path, b.result("nft"))
				}
			}
			err := b.nftFromDebian(ctx)
			if err != nil && ctx.Err() == nil {
				b.logf("nft: %v", err)
				b.logf("WARNING: without nft, clusters do not route Services: install nftables with " +
					"apt-get install nftables, or on Fedora with dnf install nftables")
				return nil
			}
			return err
		},
	}
}

// nftFromDebian unpacks nft with the libraries that this machine lacks, and builds the
// program that runs it with them.
func (b *builder) nftFromDebian(ctx context.Context) error {
	packages, err := MissingPackages(ctx, "nftables")
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("apt-get says that nftables is installed, but there is no nft")
	}
	root, err := b.unpack(ctx, "nftables", packages...)
	if err != nil {
		return err
	}
	dir := b.result(nftDir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, _ := filepath.Glob(filepath.Join(root, "usr/sbin/nft"))
	for _, pattern := range []string{"lib/*/*.so.*", "usr/lib/*/*.so.*"} {
		libraries, _ := filepath.Glob(filepath.Join(root, pattern))
		files = append(files, libraries...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file) // follows links
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o755); err != nil {
			return err
		}
	}
	err = b.compile(ctx, "nft", goBuild{dir: b.module, out: b.result("nft"), targets: []string{"./cmd/nft"}})
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, b.result("nft"), "--version").CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("running nft: %w: %s", err, out), os.Remove(b.result("nft")))
	}
	return nil
}
