package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// goEnvironment returns the environment in which the go command builds for a platform.
// What the user has set must not change the result.
func goEnvironment(platform string) ([]string, error) {
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, fmt.Errorf("platform: %w", err)
	}
	environment := []string{
		"CGO_ENABLED=0", "GOOS=" + p.OS, "GOARCH=" + p.Architecture, "GOFLAGS=-trimpath", "GOEXPERIMENT=", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GORISCV64=rva20u64",
	}
	if p.Architecture == "arm" {
		environment = append(environment, "GOARM="+strings.TrimPrefix(p.Variant, "v"))
	}
	return environment, nil
}

// programDir returns the directory of the executables for a platform.
func (o Options) programDir(platform string) string {
	return filepath.Join(o.Dir, "programs", strings.ReplaceAll(platform, "/", "-"))
}

// compile builds the programs for a platform. What Go records about the repository is
// left out: it differs between a clone, a worktree and an archive of the same commit.
func (o Options) compile(ctx context.Context, definitions []Definition, platform string) error {
	fmt.Fprintf(o.Log, "images: compiling for %s, which takes up to ten minutes the first time\n", platform)
	environment, err := goEnvironment(platform)
	if err != nil {
		return err
	}
	dir := o.programDir(platform)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	const tags = "grpcnotrace" // without the pages of gRPC's traces, as the Makefile explains
	const variables = "akri.sh/akri/internal/version."
	flags := fmt.Sprintf("-s -w -X %sversion=%s -X %scommit=%s", variables, o.Version, variables, o.Revision)
	arguments := []string{"build", "-buildvcs=false", "-tags=" + tags, "-ldflags=" + flags, "-o", dir + string(filepath.Separator)}
	for _, d := range definitions {
		arguments = append(arguments, d.pkg())
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = o.Root
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = o.Log, o.Log
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build for %s: %w", platform, err)
	}
	return nil
}
