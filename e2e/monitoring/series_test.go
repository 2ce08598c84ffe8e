package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// enumerated are the labels whose values are words that the documentation lists.
var enumerated = []string{"state", "outcome", "level", "condition", "reason"}

// TestSeries checks that the series of the unit tests could be scraped: their metrics and
// labels exist, and so do the values of labels, in the tests and in the alerts. An alert
// that waits for a value that nothing has never fires.
func TestSeries(t *testing.T) {
	known := knownMetrics(t)
	documented := string(read(t, "docs/metrics.md")) + string(read(t, "docs/conditions.md"))
	exists := func(place, name, value string) {
		t.Helper()
		if slices.Contains(enumerated, name) && !regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).MatchString(documented) {
			t.Errorf("%s: docs/metrics.md and docs/conditions.md have no value %q of the label %s", place, value, name)
		}
	}
	var file struct {
		Tests []struct {
			Input []struct{ Series string } `json:"input_series"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(read(t, "e2e/monitoring/testdata/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, test := range file.Tests {
		for _, input := range test.Input {
			series, err := parser.NewParser(parser.Options{}).ParseMetric(input.Series)
			if err != nil {
				t.Errorf("%s: %v", input.Series, err)
				continue
			}
			has, found := known[series.Get("__name__")]
			if !found {
				t.Errorf("%s: there is no such metric", input.Series)
			}
			has = append(slices.Clone(has), targetLabels...)
			series.Range(func(label labels.Label) {
				if label.Name != "__name__" && !slices.Contains(has, label.Name) {
					t.Errorf("%s: the metric has no label %s", input.Series, label.Name)
				}
				exists(input.Series, label.Name, label.Value)
			})
		}
	}
	for _, alert := range alerts(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(alert.Expr.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, selectors := range parser.ExtractSelectors(expr) {
			for _, matcher := range selectors {
				for value := range strings.SplitSeq(matcher.Value, "|") {
					exists(alert.Alert, matcher.Name, value)
				}
			}
		}
	}
}
