package helm_test

import (
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
