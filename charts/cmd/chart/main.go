// Command chart packages the chart for a release, and publishes it. The Makefile runs it:
//
//	chart -version=v1.2.3 -registry=registry.example.com/akri         # make chart
//	chart -version=v1.2.3 -registry=registry.example.com/akri -push   # make push-chart
//	chart -version=v1.2.3 -manifests=../config                        # make manifests
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"akri.sh/akri/charts/helm"
)

func main() {
	version := flag.String("version", "", "version of the release, such as v1.2.3: the chart's version, and the tag of its images")
	registry := flag.String("registry", "", "registry of the images, such as registry.example.com/akri (default akri.sh)")
	source := flag.String("source", "", "URL of the repository, which the chart names (default none)")
	out := flag.String("out", ".", "directory of the archive")
	push := flag.Bool("push", false, "publish the archive, next to the images, and print its name with its digest")
	plainHTTP := flag.Bool("plain-http", false, "allow connections without TLS; loopback addresses need no permission")
	config := flag.String("manifests", "", "`directory` config/: write manifests made from it instead, which need no Helm")
	flag.Parse()
	if *config != "" {
		files, err := helm.Manifests(*config, *out, *version, *registry)
		finish(strings.Join(files, "\n"), err)
		return
	}
	name, err := helm.Package(*version, *registry, *source, *out)
	if err == nil && *push {
		name, err = helm.Push(name, *registry, *plainHTTP)
	}
	finish(name, err)
}

// finish prints what was written, or the error.
func finish(written string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
	fmt.Println(written)
}
