// Package metricsdoc compares the names and labels in the tables of docs/metrics.md with
// the metrics that a program registers. It is for tests only.
package metricsdoc

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Recorder is a registerer that records its collectors.
type Recorder struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder { return &Recorder{Registry: prometheus.NewRegistry()} }

// Register registers and records a collector.
func (r *Recorder) Register(collector prometheus.Collector) error {
	r.collectors = append(r.collectors, collector)
	return r.Registry.Register(collector)
}

// MustRegister registers and records collectors.
func (r *Recorder) MustRegister(collectors ...prometheus.Collector) {
	r.collectors = append(r.collectors, collectors...)
	r.Registry.MustRegister(collectors...)
}

var (
	// row matches the beginning of a row of a table: metric, labels or "none".
	row         = regexp.MustCompile("(?m)^\\| `akri_[a-z_]+` \\| [a-z_, ]+ \\|")
	description = regexp.MustCompile(`^Desc\{fqName: "(akri_[a-z_]+)",.* constLabels: \{\}, variableLabels: \{(.*)\}\}$`)
)

// Check compares the chapter on a program in docs with the metrics that the program
// has registered. Metrics of libraries are ignored.
func Check(t *testing.T, docs, program string, recorder *Recorder) {
	t.Helper()
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(text), "\n## "+program+"\n")
	if !found {
		t.Fatalf("%s has no chapter on %s", docs, program)
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var registered []string
	documented := row.FindAllString(chapter, -1)
	for _, collector := range recorder.collectors {
		descriptions := make(chan *prometheus.Desc, 100)
		collector.Describe(descriptions)
		close(descriptions)
		for each := range descriptions {
			if match := description.FindStringSubmatch(each.String()); match != nil {
				labels := cmp.Or(strings.ReplaceAll(match[2], ",", ", "), "none")
				registered = append(registered, fmt.Sprintf("| `%s` | %s |", match[1], labels))
			}
		}
	}
	if len(registered) == 0 {
		t.Errorf("%s registers no metric", program)
	}
	for _, line := range registered {
		if !slices.Contains(documented, line) {
			t.Errorf("%s, chapter %s, is missing a line that begins with\n%s", docs, program, line)
		}
	}
	for _, line := range documented {
		if !slices.Contains(registered, line) {
			t.Errorf("%s, chapter %s, has a line for a metric that is not registered\n%s", docs, program, line)
		}
	}
}
