package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// storeFile holds the known endpoints between two runs of the agent. It may be
// deleted at any time.
const storeFile = "agent-handlers.json"

func load(directory string) ([]Entry, error) {
	content, err := os.ReadFile(filepath.Join(directory, storeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	if err := json.Unmarshal(content, &entries); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(directory, storeFile), err)
	}
	var valid []Entry
	for _, entry := range entries {
		if _, err := checked(entry.Endpoint); err == nil && entry.Address != "" && len(valid) < maxEndpoints {
			valid = append(valid, entry)
		}
	}
	return valid, nil
}

func store(directory string, entries []Entry) error {
	content, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(directory, storeFile)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path) // whole or not at all
}
