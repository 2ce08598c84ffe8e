package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"akri.sh/akri/kubebox/cluster/internal/node"
)

// Load imports image archives in the format of docker save into every node. Pods whose
// imagePullPolicy is not Always can use them.
func (c *Cluster) Load(ctx context.Context, archives ...string) error {
	for _, name := range c.state.Nodes {
		for _, archive := range archives {
			if err := c.load(ctx, name, archive); err != nil {
				return fmt.Errorf("loading %s into %s: %w", archive, name, err)
			}
		}
	}
	return nil
}

func (c *Cluster) load(ctx context.Context, name, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	return c.Exec(ctx, Command{Node: name, Args: node.ImportCommand(c.state.Bin), Stdin: file})
}

// copyImages copies the archives into the run directory, from which nodes import them
// at every boot.
func copyImages(dir string, archives []string) ([]string, error) {
	imageDir := filepath.Join(dir, "images")
	if err := os.MkdirAll(imageDir, 0o755); err != nil {
		return nil, err
	}
	var copies []string
	for i, archive := range archives {
		target := filepath.Join(imageDir, fmt.Sprintf("%02d-%s", i, filepath.Base(archive)))
		if err := copyFile(archive, target); err != nil {
			return nil, err
		}
		copies = append(copies, target)
	}
	return copies, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
