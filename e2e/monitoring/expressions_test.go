package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// targetLabels are those that Prometheus adds to what it scrapes by the PodMonitor.
var targetLabels = []string{"job", "namespace", "pod", "container", "endpoint", "instance", "node"}

// alertLabels are the labels of Prometheus' own series ALERTS.
var alertLabels = []string{"alertname", "alertstate", "severity", "namespace", "configuration", "node", "job"}

var (
	documentedRow = regexp.MustCompile("(?m)^\\| `(akri_[a-z_]+)` \\| ([a-z_, ]+) \\|")
	legendLabel   = regexp.MustCompile(`{{([a-z_]+)}}`)
	alertLabel    = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// knownMetrics maps each metric to its labels: those of docs/metrics.md, and those of
// libraries and Kubernetes in testdata/libraries.txt.
func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{"up": nil, "ALERTS": alertLabels}
	add := func(name, labels string) {
		var list []string
		for label := range strings.SplitSeq(labels, ",") {
			if label = strings.TrimSpace(label); label != "none" && label != "" {
				list = append(list, label)
			}
		}
		known[name] = list
		if strings.HasSuffix(name, "_seconds") { // if it is a histogram
			known[name+"_sum"], known[name+"_count"], known[name+"_bucket"] = list, list, append([]string{"le"}, list...)
		}
	}
	for _, match := range documentedRow.FindAllStringSubmatch(string(read(t, "docs/metrics.md")), -1) {
		add(match[1], match[2])
	}
	for _, metric := range libraryMetrics(t) {
		add(metric.name, strings.Join(metric.labels, ","))
	}
	return known
}

// libraryMetric is a line of testdata/libraries.txt.
type libraryMetric struct {
	name   string
	labels []string
}

func libraryMetrics(t *testing.T) []libraryMetric {
	t.Helper()
	var all []libraryMetric
	for line := range strings.Lines(string(read(t, "e2e/monitoring/testdata/libraries.txt"))) {
		fields := strings.Fields(line)
		if len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			all = append(all, libraryMetric{fields[0], fields[1:]})
		}
	}
	return all
}

// checker checks expressions against the metrics that exist.
type checker struct {
	t     *testing.T
	known map[string][]string
	used  map[string]bool
}

// labels checks an expression, and returns the labels that its result may have.
func (c *checker) labels(place string, node parser.Node) []string {
	switch e := node.(type) {
	case *parser.VectorSelector:
		labels, found := c.known[e.Name]
		if !found {
			c.t.Errorf("%s: there is no metric %s", place, e.Name)
		}
		c.used[e.Name] = true
		labels = append(slices.Clone(labels), targetLabels...)
		for _, matcher := range e.LabelMatchers {
			if matcher.Name != "__name__" && !slices.Contains(labels, matcher.Name) {
				c.t.Errorf("%s: %s has no label %s", place, e.Name, matcher.Name)
			}
		}
		return labels
	case *parser.AggregateExpr:
		inner := c.labels(place, e.Expr)
		for _, label := range e.Grouping {
			if !slices.Contains(inner, label) {
				c.t.Errorf("%s: by (%s): there is no such label in %s", place, label, e.Expr)
			}
		}
		return e.Grouping
	case *parser.BinaryExpr:
		left, right := c.labels(place, e.LHS), c.labels(place, e.RHS)
		if _, isNumber := e.LHS.(*parser.NumberLiteral); isNumber {
			return right
		}
		return left
	}
	var all []string
	for child := range parser.ChildrenIter(node) {
		all = append(all, c.labels(place, child)...)
	}
	return slices.DeleteFunc(all, func(label string) bool { return isQuantile(node) && label == "le" })
}

func isQuantile(node parser.Node) bool {
	call, ok := node.(*parser.Call)
	return ok && call.Func.Name == "histogram_quantile"
}

// check parses an expression and checks it, and the labels that texts about its result
// name.
func (c *checker) check(place, expr string, named []string) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		c.t.Errorf("%s: %v", place, err)
		return
	}
	labels := c.labels(place, parsed)
	for _, label := range named {
		if !slices.Contains(labels, label) {
			c.t.Errorf("%s: a text has the label %s, which the result of the expression does not have", place, label)
		}
	}
}

// TestExpressions checks that all metrics and labels in alerts and dashboards exist.
func TestExpressions(t *testing.T) {
	c := &checker{t: t, known: knownMetrics(t), used: map[string]bool{}}
	for _, alert := range alerts(t) {
		text := alert.Annotations["summary"] + alert.Annotations["description"]
		c.check(alert.Alert, alert.Expr.String(), submatches(alertLabel, text))
	}
	for _, query := range panelQueries(t) {
		c.check(query.place, query.expr, submatches(legendLabel, query.legend))
	}
	for _, metric := range libraryMetrics(t) {
		if !c.used[metric.name] && !c.used[metric.name+"_bucket"] {
			t.Errorf("testdata/libraries.txt: nothing uses %s: remove it", metric.name)
		}
	}
	for _, match := range documentedRow.FindAllStringSubmatch(string(read(t, "docs/metrics.md")), -1) {
		if name := match[1]; !c.used[name] && !c.used[name+"_bucket"] && !c.used[name+"_sum"] && !unused[name] {
			t.Errorf("%s is in no alert and no dashboard: add it, or say in unused why not", name)
		}
	}
}

// unused lists documented metrics that no alert and no dashboard needs.
var unused = map[string]bool{
	"akri_handler_requests": true, // akri_discovery_streams counts the same, seen from the agents
}

func submatches(pattern *regexp.Regexp, text string) []string {
	var all []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}
