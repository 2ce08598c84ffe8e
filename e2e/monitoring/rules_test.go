package monitoring

import (
	"os/exec"
	"path/filepath"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/e2e/peers"
)

// program returns the path of prometheus or promtool.
func program(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(peers.Debian(t, "prometheus"), "usr", "bin", name)
}

// promtool runs promtool in a directory, and fails the test if it fails.
func promtool(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t, "promtool"), arguments...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", arguments, err, output)
	}
}

// writeYAML writes a value to a file in a directory.
func writeYAML(t *testing.T, dir, name string, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, name), text)
}

// TestRules checks the rules by promtool, and runs their unit tests.
func TestRules(t *testing.T) {
	dir := t.TempDir()
	rules := readRules(t)
	writeYAML(t, dir, "annotated.yaml", rules)
	promtool(t, dir, "check", "rules", "--lint-fatal", "annotated.yaml")

	for _, group := range rules.Groups {
		for i := range group.Rules {
			group.Rules[i].Annotations = nil
		}
	}
	writeYAML(t, dir, "rules.yaml", rules)
	cases := read(t, "e2e/monitoring/testdata/alerts.yaml")
	writeFile(t, filepath.Join(dir, "alerts.yaml"), cases)
	promtool(t, dir, "test", "rules", "alerts.yaml")
	checkCoverage(t, rules, cases)
}

// checkCoverage checks that for each alert there is a time at which it fires, and one
// before and after it at which it does not.
func checkCoverage(t *testing.T, rules monitoringv1.PrometheusRuleSpec, cases []byte) {
	t.Helper()
	var file struct {
		Tests []struct {
			Expectations []struct {
				Alert  string           `json:"alertname"`
				Alerts []map[string]any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(cases, &file); err != nil {
		t.Fatal(err)
	}
	sequences := map[string]string{}
	for _, test := range file.Tests {
		for _, expectation := range test.Expectations {
			state := "-"
			if len(expectation.Alerts) > 0 {
				state = "+"
			}
			sequences[expectation.Alert] += state
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if sequence := sequences[rule.Alert]; sequence != "-+-" {
				t.Errorf("testdata/alerts.yaml: %s: the states are %q, want -+-: not firing, firing, and not firing again", rule.Alert, sequence)
			}
		}
	}
}
