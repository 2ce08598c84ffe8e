package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// runc returns the step that builds runc. It is the only program that contains C, and
// it uses libseccomp. The step tries three ways to get it, in order, until one succeeds:
//
//  1. Build it with libseccomp from Debian's package, unpacked but not installed.
//  2. Use the runc from Debian's package, unpacked but not installed.
//  3. Copy the runc that is installed on this machine.
func (b *builder) runc() step {
	return step{
		name:  "runc",
		title: "runc " + runcVersion,
		inputs: inputs{
			dirs: []string{filepath.Join(b.module, "runtime")},
			text: []string{runcVersion},
		},
		results: []string{"runc"},
		fetch:   b.goBuildRunc("").fetch,
		run: func(ctx context.Context) error {
			var failures []error
			ways := []func(context.Context) error{b.runcBuilt, b.runcFromDebian, b.runcInstalled}
			for i, way := range ways {
				os.Remove(b.result("runc")) // never overwrite a program that may be running
				err := way(ctx)
				if err == nil {
					return nil
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				failures = append(failures, fmt.Errorf("attempt %d: %w", i+1, err))
				b.logf("runc: %v", failures[i])
			}
			return fmt.Errorf("install a C compiler (gcc) or runc: %w", errors.Join(failures...))
		},
	}
}

func (b *builder) goBuildRunc(out string) goBuild {
	return goBuild{
		dir:     filepath.Join(b.module, "runtime"),
		out:     out,
		ldflags: "-X main.version=" + runcVersion,
		env:     []string{"CGO_ENABLED=1"},
		targets: []string{"github.com/opencontainers/runc"},
	}
}

func (b *builder) runcBuilt(ctx context.Context) error {
	if err := requirePrograms("gcc", "pkg-config"); err != nil {
		return err
	}
	root, err := b.unpack(ctx, "libseccomp-dev", "libseccomp-dev")
	if err != nil {
		return err
	}
	archives, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/libseccomp.a"))
	if len(archives) == 0 {
		return errors.New("libseccomp-dev contains no static library")
	}
	libDir := filepath.Dir(archives[0])
	shared, _ := filepath.Glob(filepath.Join(libDir, "*.so*"))
	for _, link := range shared {
		os.Remove(link) // so that the linker uses the static library
	}
	g := b.goBuildRunc(b.result("runc"))
	g.tags = "seccomp"
	g.env = append(g.env, "PKG_CONFIG_PATH="+filepath.Join(libDir, "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR="+root)
	return b.compile(ctx, "runc", g)
}

func (b *builder) runcFromDebian(ctx context.Context) error {
	root, err := b.unpack(ctx, "runc", "runc")
	if err != nil {
		return err
	}
	path := filepath.Join(root, "usr/sbin/runc")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(root, "usr/bin/runc")
	}
	return b.copyRunc(ctx, path)
}

func (b *builder) runcInstalled(ctx context.Context) error {
	path, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return b.copyRunc(ctx, path)
}

func (b *builder) copyRunc(ctx context.Context, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.result("runc"), content, 0o755); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, b.result("runc"), "--version").CombinedOutput(); err != nil {
		return fmt.Errorf("running %s: %w: %s", path, err, out)
	}
	return nil
}
