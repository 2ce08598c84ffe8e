// Command chart packages the chart for a release.
package main

import (
	"flag"
	"fmt"
	"os"

	"akri.sh/akri/charts/helm"
)

func main() {
	version := flag.String("version", "", "version of the release, such as v1.2.3: the chart's version, and the tag of its images")
	out := flag.String("out", ".", "directory of the archive")
	flag.Parse()
	file, err := helm.Package(*version, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
	fmt.Println(file)
}
