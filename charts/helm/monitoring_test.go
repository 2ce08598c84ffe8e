package helm_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRunbookURLs checks that each alert names the section of its runbook under the URL
// that is a value, and that there is no such annotation without the value.
func TestRunbookURLs(t *testing.T) {
	const page = "https://git.example/akri/docs/runbooks.md"
	for base, values := range map[string]string{
		page: "metrics: {prometheusRule: {enabled: true, runbooks: '" + page + "'}}",
		"":   "metrics: {prometheusRule: {enabled: true}}",
	} {
		groups, _, err := unstructured.NestedSlice(render(t, values)["PrometheusRule akri-system/akri"], "spec", "groups")
		if err != nil {
			t.Fatal(err)
		}
		alerts := 0
		for _, group := range groups {
			rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
			for _, rule := range rules {
				alerts++
				name, _, _ := unstructured.NestedString(rule.(map[string]any), "alert")
				want := ""
				if base != "" {
					want = base + "#" + strings.ToLower(name)
				}
				if got, _, _ := unstructured.NestedString(rule.(map[string]any), "annotations", "runbook_url"); got != want {
					t.Errorf("%s: runbook_url is %q, want %q", name, got, want)
				}
			}
		}
		if alerts < 30 {
			t.Errorf("%q: only %d alerts", base, alerts)
		}
	}
}

// TestDashboards checks that there is a ConfigMap for each dashboard if the value says so,
// with the labels that Grafana's sidecar selects, and otherwise none.
func TestDashboards(t *testing.T) {
	for values, want := range map[string][]string{
		"":                                       nil,
		"metrics: {dashboards: {enabled: true}}": {"agents", "controller", "fleet", "slots"},
	} {
		var got []string
		for id, o := range render(t, values) {
			name, found := strings.CutPrefix(id, "ConfigMap akri-system/akri-dashboard-")
			if !found {
				continue
			}
			got = append(got, name)
			if label, _, _ := unstructured.NestedString(o, "metadata", "labels", "grafana_dashboard"); label != "1" {
				t.Errorf("%s: the label is %q", id, label)
			}
			data, _, _ := unstructured.NestedStringMap(o, "data")
			for file, content := range data {
				var dashboard struct{ Title string }
				if err := json.Unmarshal([]byte(content), &dashboard); err != nil || dashboard.Title == "" {
					t.Errorf("%s: %s has the title %q: %v", id, file, dashboard.Title, err)
				}
			}
			if files := slices.Collect(maps.Keys(data)); !slices.Equal(files, []string{name + ".json"}) {
				t.Errorf("%s has the files %v", id, files)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: the dashboards are %v, want %v", values, got, want)
		}
	}
}
