// Command dashboards writes the Grafana dashboards of config/monitoring/dashboards:
//
//	go -C tools run ./dashboards -out ../config/monitoring/dashboards
//
// A dashboard is a list of rows with panels; grafana.go turns it into Grafana's JSON. To
// add a panel, add it to the dashboard's file, and run make generate.
//
// Always: equal panels give equal JSON, so the files only change if a panel does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

var dashboards = []dashboard{fleet, controller, agents, slots}

func main() {
	out := flag.String("out", ".", "`directory` to write to")
	flag.Parse()
	for _, d := range dashboards {
		text, err := d.marshal()
		if err == nil {
			err = os.WriteFile(filepath.Join(*out, d.name+".json"), text, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "dashboard %s: %v\n", d.name, err)
			os.Exit(1)
		}
	}
}
