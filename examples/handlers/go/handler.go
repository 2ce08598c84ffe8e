package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/details"
)

const (
	scanInterval = time.Second
	maxDevices   = 1000
)

// handler finds the files in a directory.
type handler struct{ interval time.Duration }

// Discover implements [discovery.Handler].
func (h handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	directory, err := parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	ticker := time.NewTicker(h.interval)
	defer ticker.Stop()
	var sent []string
	for first := true; ; first = false {
		found, err := files(directory)
		if err != nil {
			return err // the agent keeps the devices for some time, and calls again
		}
		if first || !slices.Equal(found, sent) {
			if err := send(devices(directory, found)); err != nil {
				return err
			}
			sent = found
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// parse returns the directory in discoveryDetails.
func parse(discoveryDetails string) (string, error) {
	var fields struct {
		Directory string `json:"directory"`
	}
	if err := details.Decode(discoveryDetails, &fields); err != nil {
		return "", err
	}
	if !filepath.IsAbs(fields.Directory) {
		return "", details.Faultf("directory", "want an absolute path, not %q", fields.Directory)
	}
	return filepath.Clean(fields.Directory), nil
}

// files returns the names of the files in a directory, sorted. A directory that does not
// exist has none.
func files(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && len(names) < maxDevices {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func devices(directory string, names []string) []discovery.Device {
	var list []discovery.Device
	for _, name := range names {
		list = append(list, discovery.Device{
			ID:         name,
			Properties: map[string]string{"FILE_NAME": name, "FILE_PATH": filepath.Join(directory, name)},
		})
	}
	return list
}
