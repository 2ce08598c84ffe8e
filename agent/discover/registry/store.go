package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// storeFile keeps the endpoints across restarts of the agent. It may be deleted at
// any time.
const storeFile = "agent-handlers.json"

// load returns the valid entries of the file.
func load(dir string) ([]Entry, error) {
	content, err := os.ReadFile(filepath.Join(dir, storeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	if err := json.Unmarshal(content, &entries); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, storeFile), err)
	}
	var valid []Entry
	for _, entry := range entries {
		if _, err := checked(entry.Endpoint); err == nil && entry.Address != "" && !entry.Network && len(valid) < maxEndpoints {
			valid = append(valid, entry)
		}
	}
	return valid, nil
}

// store replaces the file atomically.
func store(dir string, entries []Entry) error {
	content, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, storeFile)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
