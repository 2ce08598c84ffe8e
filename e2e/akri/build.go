package akri

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	// Images are image archives, one for each program that runs as a pod.
	Images []string
}

// images maps each program that runs as a pod to the name of its image in the
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
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w",
		"-o", programs.Dir+string(filepath.Separator), "./cmd/...")
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		return Programs{}, fmt.Errorf("build Akri: %w", err)
	}
	archives := filepath.Join(programs.Dir, "images")
	if err := os.MkdirAll(archives, 0o755); err != nil {
		return Programs{}, fmt.Errorf("create the directory of images: %w", err)
	}
	for program, name := range images {
		archive := filepath.Join(archives, program+".tar")
		err := image.Write(archive, image.Image{
			Name:       name,
			Files:      map[string]string{"/" + program: filepath.Join(programs.Dir, program)},
			Entrypoint: []string{"/" + program},
		})
		if err != nil {
			return Programs{}, fmt.Errorf("write the image of %s: %w", program, err)
		}
		programs.Images = append(programs.Images, archive)
	}
	fmt.Fprintf(log, "akri: built in %.1fs\n", time.Since(began).Seconds())
	return programs, nil
}
