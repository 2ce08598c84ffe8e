// Command manifests writes the files that install Akri without Helm. The Makefile runs it:
//
//	manifests -version=v1.2.3 -registry=registry.example.com/akri         # make manifests
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"akri.sh/akri/charts/helm"
)

func main() {
	version := flag.String("version", "", "tag of the images, such as v1.2.3")
	registry := flag.String("registry", "", "registry of the images, such as registry.example.com/akri (default akri.sh)")
	config := flag.String("config", "../config", "directory of the manifests")
	out := flag.String("out", "../bin", "directory of the files, in the repository")
	flag.Parse()
	files, err := write(*config, *out, *version, *registry)
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(files, "\n"))
}

// write writes the files into a directory, which it creates.
func write(config, out, version, registry string) ([]string, error) {
	config, err := filepath.Abs(config)
	if err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	return helm.Manifests(config, out, version, registry)
}
