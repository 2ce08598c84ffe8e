package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/kubebox/build"
)

// read reads a file of the repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// readRules reads the alert rules. Unknown fields are errors, as in the API server.
func readRules(t *testing.T) monitoringv1.PrometheusRuleSpec {
	t.Helper()
	var object monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(read(t, "config/monitoring/rules.yaml"), &object); err != nil {
		t.Fatal(err)
	}
	return object.Spec
}

// alerts returns the rules of all groups.
func alerts(t *testing.T) []monitoringv1.Rule {
	t.Helper()
	var all []monitoringv1.Rule
	for _, group := range readRules(t).Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// readPodMonitor reads the PodMonitor. Unknown fields are errors.
func readPodMonitor(t *testing.T) monitoringv1.PodMonitor {
	t.Helper()
	var object monitoringv1.PodMonitor
	if err := yaml.UnmarshalStrict(read(t, "config/monitoring/podmonitor.yaml"), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// panelQuery is a query of a panel.
type panelQuery struct {
	place  string // DASHBOARD: PANEL
	expr   string
	legend string
}

// variables are the values that the dashboards' variables get in tests.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$node", ".*")

// panelQueries returns the queries of all dashboards, without variables.
func panelQueries(t *testing.T) []panelQuery {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "config/monitoring/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	var all []panelQuery
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr, LegendFormat string }
			}
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				all = append(all, panelQuery{
					filepath.Base(file) + ": " + panel.Title, variables.Replace(target.Expr), target.LegendFormat,
				})
			}
		}
	}
	return all
}

// manifests returns the manifests in config/, relative to the root of the repository.
func manifests(t *testing.T) []string {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "config/*/*.yaml"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d manifests: %v", len(files), err)
	}
	for i, file := range files {
		if files[i], err = filepath.Rel(root, file); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
