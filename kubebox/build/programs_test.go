package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakePrograms makes shell scripts the only programs on the PATH.
func fakePrograms(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// newBuilder returns a builder of this module into a new directory.
func newBuilder(t *testing.T) *builder {
	t.Helper()
	return &builder{progress: &progress{out: io.Discard, began: time.Now()}, dir: t.TempDir(), module: ".."}
}

func assertError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

// downloads is an apt-get that downloads each package.
const downloads = `shift; for p; do : > "$p.deb"; done`

func TestFailuresOfPrograms(t *testing.T) {
	for name, tc := range map[string]struct {
		programs map[string]string
		run      func(context.Context, *builder) error
		want     string
	}{
		"the dependencies of a package are unknown without apt-get": {
			nil,
			func(ctx context.Context, _ *builder) error { _, err := MissingPackages(ctx, "nftables"); return err },
			"apt-get is not installed",
		},
		"apt-get does not know the package": {
			map[string]string{"apt-get": "echo E: Unable to locate package nftables >&2; exit 100"},
			func(ctx context.Context, _ *builder) error { _, err := MissingPackages(ctx, "nftables"); return err },
			"apt-get install --simulate nftables: exit status 100: E: Unable to locate package nftables",
		},
		"packages are not unpacked without dpkg": {
			map[string]string{"apt-get": downloads},
			func(ctx context.Context, b *builder) error { _, err := b.unpack(ctx, "x", "x"); return err },
			"dpkg is not installed",
		},
		"apt-get cannot download": {
			map[string]string{"apt-get": "echo E: no network; exit 100", "dpkg": ""},
			func(ctx context.Context, b *builder) error { _, err := b.unpack(ctx, "x", "x", "y"); return err },
			"apt-get download x y: exit status 100: E: no network",
		},
		"apt-get downloads less than it should": {
			map[string]string{"apt-get": `: > "$2.deb"`, "dpkg": ""},
			func(ctx context.Context, b *builder) error { _, err := b.unpack(ctx, "x", "x", "y"); return err },
			`apt-get download ["x" "y"]: 1 packages were downloaded`,
		},
		"apt-get takes nftables for installed": {
			map[string]string{"apt-get": ""},
			func(ctx context.Context, b *builder) error { return b.nftFromDebian(ctx) },
			"apt-get says that nftables is installed, but there is no nft",
		},
		"libseccomp has no static library": {
			map[string]string{"apt-get": downloads, "dpkg": "", "gcc": "", "pkg-config": ""},
			func(ctx context.Context, b *builder) error { return b.runcBuilt(ctx) },
			"libseccomp-dev contains no static library",
		},
		"libseccomp is not found without pkg-config": {
			map[string]string{"gcc": ""},
			func(ctx context.Context, b *builder) error { return b.runcBuilt(ctx) },
			"pkg-config is not installed",
		},
		"the installed runc does not run": {
			map[string]string{"runc": "echo wrong architecture; exit 126"},
			func(ctx context.Context, b *builder) error { return b.runcInstalled(ctx) },
			"/runc: exit status 126: wrong architecture",
		},
		"modules cannot be downloaded": {
			map[string]string{"go": "echo go: no network; exit 1"},
			func(ctx context.Context, _ *builder) error { return goBuild{dir: "."}.fetch(ctx) },
			"downloading modules for .: exit status 1: go: no network",
		},
		"a version was never released": {
			map[string]string{"go": `echo '{"Error": "k8s.io/kubernetes@v1.36.99: unknown revision"}'; exit 1`},
			func(ctx context.Context, b *builder) error { return b.generate(ctx, "v1.36.99", b.work("kubernetes")) },
			"downloading k8s.io/kubernetes: k8s.io/kubernetes@v1.36.99: unknown revision: choose another patch release: " +
				"go list -m -versions k8s.io/kubernetes shows some of them",
		},
		"a version cannot be downloaded": {
			map[string]string{"go": "echo go: no network >&2; exit 1"},
			func(ctx context.Context, b *builder) error { return b.generate(ctx, "v1.36.3", b.work("kubernetes")) },
			"downloading k8s.io/kubernetes v1.36.3: exit status 1: go: no network",
		},
		"a generated module cannot be completed": {
			map[string]string{"go": `[ "$2" = download ] && echo '{"GoMod": "'"$GO_MOD"'"}' && exit; echo go: no network; exit 1`},
			func(ctx context.Context, b *builder) error { return b.generate(ctx, "v1.36.3", b.work("kubernetes")) },
			"/kubernetes: exit status 1: go: no network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fakePrograms(t, tc.programs)
			module := filepath.Join(t.TempDir(), "go.mod")
			write(t, module, upstream)
			t.Setenv("GO_MOD", module)
			assertError(t, tc.run(t.Context(), newBuilder(t)), tc.want)
		})
	}
}

// TestEveryWayToRuncIsReported checks the error where nothing works.
func TestEveryWayToRuncIsReported(t *testing.T) {
	fakePrograms(t, nil)
	b := newBuilder(t)
	err := b.runc().run(t.Context())
	for _, want := range []string{
		"install a C compiler (gcc) or runc: attempt 1: gcc is not installed\n",
		"\nattempt 2: apt-get is not installed\n", "\nattempt 3: ",
	} {
		assertError(t, err, want)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.runc().run(canceled); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "install") {
		t.Errorf("a build that was canceled: %v", err)
	}
}

// TestInterruption checks that a build that was interrupted says so, and is not up to date.
func TestInterruption(t *testing.T) {
	b := newBuilder(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	compile := step{name: "compile", title: "Kubernetes", run: func(context.Context) error {
		cancel(interrupted)
		return errors.New("signal: killed") // as a compiler of a context that ends
	}}
	err := b.perform(ctx, compile)
	if want := "building Kubernetes: interrupted"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if pending, err := b.check(compile); err != nil || pending.current == "" {
		t.Errorf("the step is up to date: %v", err)
	}
}

// TestUnpackedNFTMustRun checks that an nft that does not run is reported and removed.
func TestUnpackedNFTMustRun(t *testing.T) {
	const compile = `while [ "$1" != -o ] && [ $# -gt 0 ]; do shift; done
[ $# -gt 0 ] && printf '#!/bin/sh\necho libnftables.so.1 is missing; exit 127\n' > "$2" && /bin/chmod +x "$2"`
	fakePrograms(t, map[string]string{
		"apt-get": `[ "$1" = install ] && echo "Inst nftables (1.0)" && exit; ` + downloads, "dpkg": "", "go": compile,
	})
	b := newBuilder(t)
	assertError(t, b.nftFromDebian(t.Context()), "running nft: exit status 127: libnftables.so.1 is missing")
	if _, err := os.Lstat(b.result("nft")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program is left: %v", err)
	}
}

// TestCompilerErrorsAreBounded checks that an error has the end of the compiler's output,
// without the names of packages.
func TestCompilerErrorsAreBounded(t *testing.T) {
	fakePrograms(t, map[string]string{
		"go": `[ "$1" = build ] || exit; i=1; while [ $i -le 100 ]; do echo "main.go:$i: no" >&2; i=$((i+1)); done; echo a/b >&2; exit 1`,
	})
	err := newBuilder(t).compile(t.Context(), "x", goBuild{dir: "."})
	assertError(t, err, "go build in .: exit status 1\nmain.go:61: no\n")
	if !strings.HasSuffix(err.Error(), "main.go:100: no") {
		t.Errorf("the error does not end with the last message: %v", err)
	}
}

func TestBuildRequiresTheRepositoryAndValidVersions(t *testing.T) {
	fakePrograms(t, nil)
	assertError(t, All(t.Context(), Options{Dir: t.TempDir()}), "the go command is required: ")
	assertError(t, All(t.Context(), Options{Dir: t.TempDir(), Versions: Versions{Kubernetes: "v1.33.0"}}), "KUBERNETES: v1.33.0: ")
	t.Setenv(KubeletVariable, "latest")
	assertError(t, All(t.Context(), Options{Dir: t.TempDir()}), `KUBELET: "latest": want a complete version`)
	t.Chdir(t.TempDir())
	const outside = "the working directory is not inside the Akri repository"
	if err := All(t.Context(), Options{}); err == nil || err.Error() != outside {
		t.Errorf("got %v", err)
	}
	t.Setenv(DirVariable, "")
	if _, err := DefaultDir(); err == nil || err.Error() != outside+": or set AKRI_K8S_BIN to the directory of executables" {
		t.Errorf("got %v", err)
	}
}

// TestControlPlaneNeedsFewerExecutables checks which are required for nodes alone.
func TestControlPlaneNeedsFewerExecutables(t *testing.T) {
	dir := t.TempDir()
	for _, name := range programs {
		write(t, filepath.Join(dir, name), "")
	}
	if err := Check(dir, false); err != nil {
		t.Errorf("a control plane: %v", err)
	}
	missing, ok := errors.AsType[*MissingError](Check(dir, true))
	want := []string{"coredns", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni/ptp", "cni/host-local", "images/pause.tar"}
	if !ok || missing.Dir != dir || !slices.Equal(missing.Files, want) {
		t.Errorf("nodes: %+v", missing)
	}
}
