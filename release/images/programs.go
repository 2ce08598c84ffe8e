package images

import (
	"context"
	"path/filepath"
	"strings"
)

// Compile builds a program as for an image, but for any platform that Go knows, such as
// darwin/arm64. It returns the path of the executable, below o.Dir.
func Compile(ctx context.Context, o Options, program, platform string) (string, error) {
	if err := o.compile(ctx, []Definition{{Program: program}}, platform); err != nil {
		return "", err
	}
	name := program
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	return filepath.Join(o.programDir(platform), name), nil
}

// Environment returns the environment in which the go command builds for a platform.
func Environment(platform string) ([]string, error) { return goEnvironment(platform) }
