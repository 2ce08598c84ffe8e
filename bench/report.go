package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"
)

// figure is a row of the table.
type figure struct {
	What string
	// Measured and Bare are the formatted figures, of Akri and of the bare client; Bare
	// may be empty.
	Measured, Bare string
	// Limit is empty if the row is informational.
	Limit string
	Met   bool
}

func (f figure) verdict() string {
	switch {
	case f.Limit == "":
		return ""
	case f.Met:
		return "yes"
	}
	return "NO"
}

// report collects the rows, and logs the progress.
type report struct {
	log  io.Writer
	rows []figure
}

// logf logs progress.
func (r *report) logf(format string, arguments ...any) {
	fmt.Fprintf(r.log, "%s bench: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, arguments...))
}

// add adds rows to the table and logs them.
func (r *report) add(rows ...figure) {
	for _, f := range rows {
		r.rows = append(r.rows, f)
		r.logf("%s: %s; bare client: %s; limit: %s %s", f.What, f.Measured, f.Bare, f.Limit, f.verdict())
	}
}

// print prints the table below a description of the machine.
func (r *report) print(out io.Writer, machine string) error {
	fmt.Fprintf(out, "\n%s\n\n", machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASUREMENT\tAKRI\tBARE CLIENT\tLIMIT\tMET")
	for _, f := range r.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.What, f.Measured, f.Bare, f.Limit, f.verdict())
	}
	return table.Flush()
}

// describeMachine describes the machine and its load.
func describeMachine() (string, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return "", err
	}
	cores, err := proc.CPUInfo()
	if err != nil {
		return "", err
	}
	load, err := proc.LoadAvg()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; %d x %s; load at the start %.2f",
		time.Now().Format(time.DateOnly), len(cores), cores[0].ModelName, load.Load1), nil
}

// percentile returns the smallest value that at least p percent of the values do not
// exceed, or NaN without values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the smallest value that at least half of the values do not exceed.
func median(values []float64) float64 { return percentile(values, 50) }

// milliseconds returns the time since a measurement began.
func milliseconds(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }

// latencyLimit bounds a median and a high percentile, in milliseconds, or the ratio of the
// high percentile to that of the bare client. 0 is no limit.
type latencyLimit struct{ median, high, ratio float64 }

// latencyRow returns the row for the milliseconds of each sample of ours and of the bare
// client, with a high percentile.
func latencyRow(what string, ours, bare []float64, high float64, limit latencyLimit) figure {
	ratio := percentile(ours, high) / percentile(bare, high)
	row := figure{
		What: fmt.Sprintf("%s, p50 / p%.0f of %d", what, high, len(ours)),
		Measured: fmt.Sprintf("%.1f / %.1f ms, ratio of p50 %.2f, of p%.0f %.2f",
			median(ours), percentile(ours, high), median(ours)/median(bare), high, ratio),
		Bare: fmt.Sprintf("%.1f / %.1f ms", median(bare), percentile(bare, high)),
	}
	switch {
	case limit.ratio > 0:
		row.Limit, row.Met = fmt.Sprintf("ratio of p%.0f <= %.1f", high, limit.ratio), ratio <= limit.ratio
	case limit.median > 0:
		row.Limit = fmt.Sprintf("<= %g / %g ms", limit.median, limit.high)
		row.Met = median(ours) <= limit.median && percentile(ours, high) <= limit.high
	}
	return row
}
