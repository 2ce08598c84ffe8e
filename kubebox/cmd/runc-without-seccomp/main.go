// Command runc-without-seccomp wraps a runc that was built without libseccomp. Such
// a runc rejects every container with a system call filter, and containerd always
// configures one. This command removes the filter from the container's configuration
// and then executes runc-plain, the runc next to it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "runc-without-seccomp:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if slices.Contains(args, "create") || slices.Contains(args, "run") {
		file := filepath.Join(bundle(args), "config.json")
		config, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if config, err = unfilter(config); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, config, 0o600); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	plain := filepath.Join(filepath.Dir(self), "runc-plain")
	return syscall.Exec(plain, append([]string{plain}, args[1:]...), os.Environ())
}

// bundle returns the directory of the container's configuration.
func bundle(args []string) string {
	for i, a := range args {
		for _, flag := range []string{"--bundle", "-b"} {
			if a == flag && i+1 < len(args) {
				return args[i+1]
			}
			if value, ok := strings.CutPrefix(a, flag+"="); ok {
				return value
			}
		}
	}
	return "."
}

// unfilter removes linux.seccomp and keeps everything else unchanged.
func unfilter(config []byte) ([]byte, error) {
	var top, linux map[string]json.RawMessage
	if err := json.Unmarshal(config, &top); err != nil {
		return nil, err
	}
	if top["linux"] == nil {
		return config, nil
	}
	if err := json.Unmarshal(top["linux"], &linux); err != nil {
		return nil, err
	}
	delete(linux, "seccomp")
	rest, err := json.Marshal(linux)
	if err != nil {
		return nil, err
	}
	top["linux"] = rest
	return json.Marshal(top)
}
