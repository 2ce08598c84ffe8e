// Command nft runs the program of the same name that the build has unpacked from Debian
// packages: nftables/nft next to this executable, with the libraries next to it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	executable, err := os.Executable()
	if err == nil {
		dir := filepath.Join(filepath.Dir(executable), "nftables")
		path := filepath.Join(dir, "nft")
		err = syscall.Exec(path, append([]string{path}, os.Args[1:]...), withLibraries(os.Environ(), dir))
		err = fmt.Errorf("run %s: %w: run make kubernetes, or install nftables", path, err)
	}
	fmt.Fprintln(os.Stderr, "nft:", err)
	os.Exit(1)
}

// withLibraries returns the environment with dir as the first directory of libraries.
func withLibraries(environment []string, dir string) []string {
	const variable = "LD_LIBRARY_PATH="
	dirs := []string{dir}
	var others []string
	for _, e := range environment {
		if value, ok := strings.CutPrefix(e, variable); !ok {
			others = append(others, e)
		} else if value != "" {
			dirs = append(dirs, value)
		}
	}
	return append(others, variable+strings.Join(dirs, ":"))
}
