package akri

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/image"
)

// Programs are Akri's executables, built from this checkout.
type Programs struct {
	// Root is the root directory of the repository.
	Root string
	// Dir holds the executables.
	Dir string
	// Version is the version that the executables have.
	Version string
	// Images are image archives, one for each program that runs as a Pod.
	Images []string
}

// images maps each program that runs as a Pod to the name of its image in the
// manifests of config/.
var images = map[string]string{
	"akri-controller": "akri.sh/controller:dev",
	"akri-agent":      "akri.sh/agent:dev",
	"akri-discovery":  "akri.sh/discovery:dev",
}

// Build compiles the programs into bin/ and writes their images.
func Build(ctx context.Context, log io.Writer) (Programs, error) {
	root, err := build.Root()
	if err != nil {
		return Programs{}, err
	}
	programs := Programs{Root: root, Dir: filepath.Join(root, "bin")}
	began := time.Now()
	fmt.Fprintln(log, "akri: building the controller, the agent, the discovery handlers and kubectl-akri")
	if programs.Version, err = versionOf(ctx, root); err != nil {
		return Programs{}, err
	}
	if err := compile(ctx, log, programs, programs.Dir, "./cmd/..."); err != nil {
		return Programs{}, fmt.Errorf("build Akri: %w", err)
	}
	for program, name := range images {
		archive, err := writeImage(programs, program, name)
		if err != nil {
			return Programs{}, err
		}
		programs.Images = append(programs.Images, archive)
	}
	fmt.Fprintf(log, "akri: built in %.1fs\n", time.Since(began).Seconds())
	return programs, nil
}

// versionOf returns the version of a checkout, as the Makefile knows it.
func versionOf(ctx context.Context, root string) (string, error) {
	output, err := exec.CommandContext(ctx, "make", "--no-print-directory", "--silent", "-C", root, "version").Output()
	if err != nil {
		return "", fmt.Errorf("make version: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

// compile builds the programs that a pattern matches, as static executables in dir.
func compile(ctx context.Context, log io.Writer, programs Programs, dir, pattern string) error {
	flags := "-ldflags=-s -w -X akri.sh/akri/internal/version.version=" + programs.Version
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", flags, "-o", dir+string(filepath.Separator), pattern)
	command.Dir = programs.Root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = log, log
	return command.Run()
}

// writeImage writes the image of a program, whose path is relative to the directory of
// executables, and returns the archive.
func writeImage(programs Programs, program, name string) (archive string, err error) {
	archive = filepath.Join(programs.Dir, "images", program+".tar")
	inside := "/" + filepath.Base(program)
	err = image.Write(archive, image.Image{
		Name:       name,
		Files:      map[string]string{inside: filepath.Join(programs.Dir, program)},
		Entrypoint: []string{inside},
	})
	if err != nil {
		return "", fmt.Errorf("write the image of %s: %w", program, err)
	}
	return archive, nil
}
