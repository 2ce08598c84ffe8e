package akri

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"akri.sh/akri/kubebox/cluster"
)

// exampleImages maps the directories of example programs to the names of their images.
var exampleImages = map[string]string{
	"examples/devices": "akri.sh/examples/%s:dev",
	"examples/brokers": "akri.sh/examples/%s-broker:dev",
}

// CompileExamples compiles the virtual devices and the brokers in examples/ into
// directories of the same names in programs.Dir.
func CompileExamples(ctx context.Context, programs Programs, log io.Writer) error {
	for dir := range exampleImages {
		if err := compile(ctx, log, programs, filepath.Join(programs.Dir, dir), "./"+dir+"/..."); err != nil {
			return fmt.Errorf("build the programs in %s: %w", dir, err)
		}
	}
	return nil
}

// BuildExamples compiles the virtual devices and the brokers in examples/, and returns
// the archives of their images.
func BuildExamples(ctx context.Context, programs Programs, log io.Writer) ([]string, error) {
	if err := CompileExamples(ctx, programs, log); err != nil {
		return nil, err
	}
	var archives []string
	for dir, name := range exampleImages {
		entries, err := os.ReadDir(filepath.Join(programs.Root, dir))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if _, err := os.Stat(filepath.Join(programs.Root, dir, entry.Name(), "main.go")); err != nil {
				continue // not a program
			}
			archive, err := writeImage(programs, filepath.Join(dir, entry.Name()), fmt.Sprintf(name, entry.Name()))
			if err != nil {
				return nil, err
			}
			archives = append(archives, archive)
		}
	}
	return archives, nil
}

// InstallExamples loads the images of the virtual devices and the brokers into all nodes.
func InstallExamples(ctx context.Context, c *cluster.Cluster, programs Programs, log io.Writer) error {
	archives, err := BuildExamples(ctx, programs, log)
	if err != nil {
		return err
	}
	if err := c.Load(ctx, archives...); err != nil {
		return fmt.Errorf("load the images of the examples: %w", err)
	}
	return nil
}
