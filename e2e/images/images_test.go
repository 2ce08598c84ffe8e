package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/release/images"
)

// version and commit are those of the images under test.
const (
	version = "v1.2.3-test"
	commit  = "0123456789abcdef0123456789abcdef01234567"
)

// built is what the tests are about.
type built struct {
	dir     string
	digests map[string]string // of images for all platforms, by name, and by name and platform
}

func TestImages(t *testing.T) {
	clustertest.Full(t)
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	b := built{dir: t.TempDir(), digests: map[string]string{}}
	all, err := images.Build(t.Context(), images.Options{
		Root: root, Dir: b.dir, Version: version, Revision: commit, Created: time.Unix(1_800_000_000, 0),
		Platforms: []string{"linux/amd64", "linux/arm64", "linux/arm/v7"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		b.digests[one.Image] = one.Index.String()
		b.digests[one.Image+" "+one.Platform] = one.Digest.String()
	}
	t.Run("Pulled", func(t *testing.T) { testPulled(t, b) })
	t.Run("Emulated", func(t *testing.T) { testEmulated(t, b) })
}

// open returns an image for a platform.
func (b built) open(t *testing.T, name, platform string) v1.Image {
	t.Helper()
	content, err := layout.ImageIndexFromPath(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	index, err := content.ImageIndex(hash(t, b.digests[name]))
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(hash(t, b.digests[name+" "+platform]))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// extract writes the program in an image for a platform into a new directory.
func (b built) extract(t *testing.T, name, platform string) string {
	t.Helper()
	dir, files := t.TempDir(), mutate.Extract(b.open(t, name, platform))
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || strings.Contains(header.Name, "/") {
			continue // only the program is of interest
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, header.Name), text, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

func hash(t *testing.T, digest string) v1.Hash {
	t.Helper()
	h, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// checkVersion returns what is wrong with the output of --version, or nothing.
func checkVersion(output []byte, platform string) string {
	for _, want := range []string{version, commit, strings.TrimSuffix(platform, "/v7")} {
		if !bytes.Contains(output, []byte(want)) {
			return fmt.Sprintf("%q does not contain %s", output, want)
		}
	}
	return ""
}

// testEmulated runs the programs for other processors, and checks a discovery handler of
// theirs against the contract of handlers.
func testEmulated(t *testing.T, b built) {
	qemu := peers.Debian(t, "qemu-user-static")
	checker := filepath.Join(b.extract(t, "discovery", images.Native()), "akri-discovery")
	details := filepath.Join(t.TempDir(), "details.yaml")
	if err := os.WriteFile(details, []byte("descriptions: [foo0, foo1]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	emulators := map[string]string{"linux/arm64": "qemu-aarch64-static", "linux/arm/v7": "qemu-arm-static"}
	for platform, emulator := range emulators {
		t.Run(platform, func(t *testing.T) {
			emulator := filepath.Join(qemu, "usr", "bin", emulator)
			programs := map[string]string{}
			for _, d := range images.All {
				if d.Dir != "" {
					continue // a broker of the examples has no version
				}
				program := filepath.Join(b.extract(t, d.Name, platform), d.Program)
				output, err := exec.CommandContext(t.Context(), emulator, program, "--version").CombinedOutput()
				if problem := checkVersion(output, platform); err != nil || problem != "" {
					t.Fatalf("%s --version: %v%s", d.Program, err, problem)
				}
				t.Logf("%s", output)
				programs[d.Name] = program
			}
			lint := exec.CommandContext(t.Context(), emulator, programs["kubectl-akri"],
				"lint", "-f", "../../examples/debug-echo/configuration.yaml")
			if output, err := lint.CombinedOutput(); err != nil {
				t.Errorf("kubectl akri lint: %v: %s", err, output)
			}
			sockets, err := os.MkdirTemp("", "akri-") // short, as it contains sockets
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(sockets) })
			var log bytes.Buffer
			handler := exec.CommandContext(t.Context(), emulator, programs["discovery"], "debug-echo")
			handler.Env = []string{"DISCOVERY_HANDLERS_DIRECTORY=" + sockets, "DEBUG_ECHO_INSTANCES_SHARED=true"}
			handler.Stdout, handler.Stderr = &log, &log
			if err := handler.Start(); err != nil {
				t.Fatal(err)
			}
			check := exec.CommandContext(t.Context(), checker, "check", "--dir="+sockets, "--details-file="+details,
				"--min-devices=2", "--timeout=60s")
			report, err := check.CombinedOutput()
			_ = handler.Process.Kill() // it never exits by itself, and check says if it did
			_ = handler.Wait()
			if err != nil {
				t.Errorf("%v: %s\nthe handler's log:\n%s", err, report, log.String())
			}
			t.Logf("%s", report)
		})
	}
}
