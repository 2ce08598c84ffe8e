package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"akri.sh/akri/kubebox/cluster"
)

// keepLogs copies the logs of the demo, which are removed with its directories, to a new directory, and returns that.
func (d localDemo) keepLogs(c *cluster.Cluster) (string, error) {
	ofProcesses, _ := filepath.Glob(filepath.Join(d.processes(), "*.log"))
	kept, err := copyLogs(filepath.Dir(string(d)), append(c.LogFiles(), ofProcesses...))
	return kept, errors.Join(err, handOverTree(kept))
}

// copyLogs copies files below parent to a new directory, as many as it can. Their paths below parent become their names.
func copyLogs(parent string, files []string) (string, error) {
	dir, err := os.MkdirTemp("", "akri-demo-logs-")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		name, nameErr := filepath.Rel(parent, file)
		content, readErr := os.ReadFile(file)
		if failure := errors.Join(nameErr, readErr); failure != nil {
			err = errors.Join(err, failure)
			continue
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")), content, 0o600))
	}
	return dir, err
}
