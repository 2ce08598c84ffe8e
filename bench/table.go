package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// figure is a row of the table.
type figure struct {
	What string `json:"what"`
	// Measured and Bare are the formatted figures, of Akri and of the bare client; Bare
	// may be empty.
	Measured string `json:"measured"`
	Bare     string `json:"bare,omitempty"`
	// Bar is the limit; empty if the row is informational.
	Bar string `json:"bar,omitempty"`
	Met bool   `json:"met"`
	// Raw has the underlying numbers, in the units that the keys name.
	Raw map[string]any `json:"raw,omitempty"`
}

func (f figure) verdict() string {
	switch {
	case f.Bar == "":
		return ""
	case f.Met:
		return "yes"
	}
	return "NO"
}

func printTable(out io.Writer, figures []figure) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASUREMENT\tAKRI\tBARE CLIENT\tLIMIT\tMET")
	for _, f := range figures {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.What, f.Measured, f.Bare, f.Bar, f.verdict())
	}
	return table.Flush()
}
