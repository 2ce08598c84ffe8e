package migration

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxRelease bounds the memory that a release takes: a Secret has at most 1 MiB, but it
// is compressed.
const maxRelease = 64 << 20

// Release is an installation of Akri by Helm.
type Release struct {
	Name      string
	Namespace string
	Chart     string // name and version
	Values    map[string]any
	// Deletes are the names of the hooks that run before an uninstall.
	Deletes []string
	// Configurations are those that are part of the release, as NAMESPACE/NAME.
	Configurations []string
	Secrets        []string
}

// ReadRelease decodes the content of a Secret in which Helm 3 and 4 store a release.
func ReadRelease(data []byte) (*Release, error) {
	compressed, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil {
		return nil, fmt.Errorf("release: not base64: %w", err)
	}
	text := compressed
	if bytes.HasPrefix(compressed, []byte{0x1f, 0x8b, 0x08}) { // old releases are not compressed
		reader, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			return nil, fmt.Errorf("release: %w", err)
		}
		if text, err = io.ReadAll(io.LimitReader(reader, maxRelease)); err != nil {
			return nil, fmt.Errorf("release: decompress: %w", err)
		}
	}
	var stored struct {
		Name      string         `json:"name"`
		Namespace string         `json:"namespace"`
		Config    map[string]any `json:"config"`
		Manifest  string         `json:"manifest"`
		Chart     struct {
			Metadata struct{ Name, Version string } `json:"metadata"`
		} `json:"chart"`
		Hooks []struct {
			Name, Kind string
			Events     []string
		} `json:"hooks"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	if !strings.Contains(stored.Manifest, oldAgent) && !strings.Contains(stored.Manifest, oldController) {
		return nil, errors.New("release: it installs neither Akri's agent nor its controller")
	}
	release := &Release{
		Name: stored.Name, Namespace: stored.Namespace, Values: stored.Config,
		Chart:          stored.Chart.Metadata.Name + " " + stored.Chart.Metadata.Version,
		Configurations: configurationsIn(stored.Manifest, stored.Namespace),
	}
	for _, hook := range stored.Hooks {
		if hook.Kind == "Job" && slices.Contains(hook.Events, "pre-delete") {
			release.Deletes = append(release.Deletes, hook.Name)
		}
	}
	return release, nil
}
