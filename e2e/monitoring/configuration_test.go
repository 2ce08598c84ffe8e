package monitoring

import (
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// compression is how many times faster time passes for the rules in the test: five
// minutes are two and a half seconds. Durations in seconds that an expression compares
// with, such as the remaining life of a certificate, stay the same.
const compression = 120

// interval is how often targets are scraped and rules evaluated: the shortest range of a
// rule, ten minutes, has ten samples.
const interval = "500ms"

// compress divides the durations of the rules, in "for" and in ranges, by compression.
func compress(t *testing.T, rules monitoringv1.PrometheusRuleSpec) {
	t.Helper()
	for _, group := range rules.Groups {
		for i := range group.Rules {
			rule := &group.Rules[i]
			if rule.For != nil {
				duration, err := model.ParseDuration(string(*rule.For))
				if err != nil {
					t.Fatalf("%s: %v", rule.Alert, err)
				}
				rule.For = new(monitoringv1.Duration((duration / compression).String()))
			}
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr.String())
			if err != nil {
				t.Fatalf("%s: %v", rule.Alert, err)
			}
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				switch e := node.(type) {
				case *parser.MatrixSelector:
					e.Range /= compression
				case *parser.SubqueryExpr:
					e.Range, e.Step = e.Range/compression, e.Step/compression
				}
				return nil
			})
			rule.Expr.StrVal = expr.String()
		}
	}
}

// writeConfiguration writes the rules, and the configuration of a Prometheus that scrapes
// what the PodMonitor selects, and the API server.
func writeConfiguration(t *testing.T, c *cluster.Cluster, dir string) {
	t.Helper()
	rules := readRules(t)
	compress(t, rules)
	writeYAML(t, dir, "rules.yaml", rules)
	writeYAML(t, dir, "prometheus.yaml", map[string]any{
		"global":         map[string]any{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{podScrape(readPodMonitor(t)), apiServerScrape(t, c, dir)},
	})
}

// apiServerScrape scrapes the API server, as kube-prometheus does.
func apiServerScrape(t *testing.T, c *cluster.Cluster, dir string) map[string]any {
	t.Helper()
	administrator, err := akri.ReadKubeconfig(c.InsideKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "ca.crt"), administrator.CA)
	writeFile(t, filepath.Join(dir, "client.crt"), administrator.Certificate)
	writeFile(t, filepath.Join(dir, "client.key"), administrator.Key)
	return map[string]any{
		"job_name": "apiserver", "scheme": "https",
		"tls_config":     map[string]any{"ca_file": "ca.crt", "cert_file": "client.crt", "key_file": "client.key"},
		"static_configs": []any{map[string]any{"targets": []string{strings.TrimPrefix(administrator.Server, "https://")}}},
		"metric_relabel_configs": []any{map[string]any{
			"source_labels": []string{"__name__"}, "regex": "apiserver_admission_webhook_.*", "action": "keep",
		}},
	}
}
