package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/release/images"
)

const (
	testVersion = "v1.2.3-4-g2469d3f"
	testPackage = "1.2.3+4.g2469d3f-1" // its form in packages, with the release
)

// built are the files for this machine, which all tests look at.
var built = sync.OnceValues(func() (Options, error) {
	dir, err := os.MkdirTemp("", "akri-packages-")
	if err != nil {
		return Options{}, err
	}
	return buildIn(filepath.Join(dir, "packages"))
})

func buildIn(dir string) (Options, error) {
	root, err := build.Root()
	if err != nil {
		return Options{}, err
	}
	o := Options{
		Root: root, Dir: dir, Version: testVersion, Revision: "2469d3f", Created: time.Unix(1767225600, 0), Log: os.Stderr,
		Source: "https://example.com/akri", Downloads: "https://example.com/download",
		Packages: []string{images.Native()}, Archives: []string{images.Native()},
	}
	names, err := Build(context.Background(), o)
	if err == nil && !slices.IsSorted(names[:len(names)-1]) {
		err = errors.New("the names are not sorted")
	}
	return o, err
}

func builtOnce(t *testing.T) Options {
	t.Helper()
	o, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestMain(m *testing.M) {
	code := m.Run()
	if o, _ := built(); o.Dir != "" {
		os.RemoveAll(filepath.Dir(o.Dir))
	}
	os.Exit(code)
}

// one returns the only file that matches a pattern.
func one(t *testing.T, o Options, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(o.Dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files[0]
}

// expected are the files of packages.
var expected = map[string][]string{
	"kubectl-akri": {
		"/usr/bin/kubectl-akri", "/usr/bin/kubectl_complete-akri", "/usr/share/bash-completion/completions/kubectl-akri",
		"/usr/share/doc/kubectl-akri/LICENSE", "/usr/share/doc/kubectl-akri/third-party-licenses.txt",
		"/usr/share/fish/vendor_completions.d/kubectl-akri.fish", "/usr/share/man/man1/kubectl-akri-why.1.gz",
		"/usr/share/man/man1/kubectl-akri.1.gz",
	},
	"akri-discovery": {
		"/usr/bin/akri-discovery", "/usr/lib/systemd/system/akri-discovery@.service", "/usr/share/doc/akri-discovery/LICENSE",
		"/usr/share/man/man1/akri-discovery-udev.1.gz", "/usr/share/man/man1/akri-discovery.1.gz",
	},
}

// dpkg unpacks the package, and what is in it runs.
func TestDebian(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb")
	}
	o := builtOnce(t)
	for name, files := range expected {
		t.Run(name, func(t *testing.T) {
			file := one(t, o, name+"_*.deb")
			fields := output(t, "dpkg-deb", "--show", "--showformat=${Package} ${Version} ${Maintainer} ${Homepage}", file)
			if want := name + " " + testPackage + " Akri <maintainers@akri.sh> https://example.com/akri"; fields != want {
				t.Errorf("the fields are %q, want %q", fields, want)
			}
			control := output(t, "dpkg-deb", "--info", file)
			if strings.Contains(control, "postinst") || strings.Contains(control, "prerm") {
				t.Errorf("the package has scripts:\n%s", control)
			}
			dir := t.TempDir()
			output(t, "dpkg-deb", "--extract", file, dir)
			for _, path := range files {
				if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", path, err)
				}
			}
			line := output(t, filepath.Join(dir, "usr/bin", name), "--version")
			if !strings.Contains(line, testVersion+" (commit 2469d3f, ") {
				t.Errorf("--version prints %q", line)
			}
			if listing := output(t, "dpkg-deb", "--contents", file); strings.Count(listing, "root/root") != strings.Count(listing, "\n") {
				t.Errorf("files do not belong to root:\n%s", listing)
			}
			for _, path := range []string{"usr/share/zsh/vendor-completions/_" + name, "usr/share/doc/" + name + "/copyright"} {
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The completion script of the package completes for kubectl.
func TestCompletionForKubectl(t *testing.T) {
	o := builtOnce(t)
	dir := t.TempDir()
	output(t, "dpkg-deb", "--extract", one(t, o, "kubectl-akri_*.deb"), dir)
	bin := filepath.Join(dir, "usr", "bin")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out := output(t, filepath.Join(bin, "kubectl_complete-akri"), "ver"); !strings.HasPrefix(out, "version\t") {
		t.Errorf("got %q", out)
	}
	script := filepath.Join(dir, "usr/share/bash-completion/completions/kubectl-akri")
	output(t, "bash", "-n", script)
}

// dpkg installs the package into an empty root directory.
func TestInstall(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("needs dpkg, and root")
	}
	o := builtOnce(t)
	root := t.TempDir()
	admin, log := filepath.Join(root, "var/lib/dpkg"), "--log="+filepath.Join(root, "dpkg.log") // not that of this machine
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(admin, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(admin, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, "dpkg", "--root="+root, log, "--force-script-chrootless", "--install", one(t, o, "akri-discovery_*.deb"))
	if _, err := os.Stat(filepath.Join(root, "usr/bin/akri-discovery")); err != nil {
		t.Error(err)
	}
	output(t, "dpkg", "--root="+root, log, "--force-script-chrootless", "--purge", "akri-discovery")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/akri-discovery")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the removal: %v", err)
	}
}

func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(name, arguments...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			out = exit.Stderr
		}
		t.Fatalf("%s %v: %v: %s", name, arguments, err, out)
	}
	return string(out)
}

// Two builds in different directories, at different times, are equal.
func TestReproducible(t *testing.T) {
	clustertest.Full(t)
	first := builtOnce(t)
	second, err := buildIn(filepath.Join(t.TempDir(), "again"))
	if err != nil {
		t.Fatal(err)
	}
	sums := func(o Options) string {
		text, err := os.ReadFile(filepath.Join(o.Dir, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if a, b := sums(first), sums(second); a != b || strings.Count(a, "\n") != 6 { // 4 packages, an archive, the manifest for krew
		t.Errorf("the checksums are\n%sand\n%s", a, b)
	}
}

// unpack returns the files of an archive by their names.
func unpack(t *testing.T, a []byte) map[string][]byte {
	t.Helper()
	decompressed, err := gzip.NewReader(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for reader := tar.NewReader(decompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}
