package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// severities are the values of the label severity.
var severities = []string{"critical", "warning", "info"}

// parts are the parts of a section of docs/runbooks.md.
var parts = []string{"**Meaning.**", "**Impact.**", "**Diagnosis.**", "**Mitigation.**"}

// TestRunbooks checks that each alert says what it means, and that docs/runbooks.md has a
// section for each alert, in the same order, and for nothing else.
func TestRunbooks(t *testing.T) {
	page := string(read(t, "docs/runbooks.md"))
	var documented []string
	for _, section := range strings.Split(page, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		documented = append(documented, name)
		position := -1
		for _, part := range parts {
			at := strings.Index(text, part)
			if at <= position {
				t.Errorf("docs/runbooks.md: %s: %s is missing, or not in its place", name, part)
			}
			position = at
		}
	}
	var existing []string
	for _, alert := range alerts(t) {
		existing = append(existing, alert.Alert)
		if want := "docs/runbooks.md#" + strings.ToLower(alert.Alert); alert.Annotations["runbook"] != want {
			t.Errorf("%s: the annotation runbook is %q, want %s", alert.Alert, alert.Annotations["runbook"], want)
		}
		for _, annotation := range []string{"summary", "description"} {
			if !strings.HasSuffix(alert.Annotations[annotation], ".") {
				t.Errorf("%s: the annotation %s is not a sentence", alert.Alert, annotation)
			}
		}
		if !slices.Contains(severities, alert.Labels["severity"]) {
			t.Errorf("%s: the severity is %q, want one of %v", alert.Alert, alert.Labels["severity"], severities)
		}
		row := fmt.Sprintf("| [%s](#%s) | %s |", alert.Alert, strings.ToLower(alert.Alert), alert.Labels["severity"])
		if !strings.Contains(page, row) {
			t.Errorf("docs/runbooks.md: the table of alerts has no line %s", row)
		}
	}
	if !slices.Equal(existing, documented) {
		t.Errorf("the alerts are\n%v\nbut docs/runbooks.md has sections for\n%v", existing, documented)
	}
}

// podTemplate matches the name of the Pods of a workload in a manifest, and metricsPort
// their port for metrics.
var (
	podTemplate = regexp.MustCompile(`(?m)^ {6}labels:\n {8}app\.kubernetes\.io/name: (\S+)`)
	metricsPort = regexp.MustCompile(`\{name: metrics, containerPort`)
)

// TestPodMonitorSelectsAll checks that the PodMonitor selects the Pods of all manifests
// with a port for metrics, and no others.
func TestPodMonitorSelectsAll(t *testing.T) {
	selector := readPodMonitor(t).Spec.Selector
	if len(selector.MatchExpressions) != 1 || selector.MatchExpressions[0].Key != "app.kubernetes.io/name" {
		t.Fatalf("the selector is %v", selector)
	}
	var found []string
	for _, manifest := range manifests(t) {
		for document := range strings.SplitSeq(string(read(t, manifest)), "\n---\n") {
			if name := podTemplate.FindStringSubmatch(document); name != nil && metricsPort.MatchString(document) {
				found = append(found, name[1])
			}
		}
	}
	selected := slices.Sorted(slices.Values(selector.MatchExpressions[0].Values))
	if slices.Sort(found); !slices.Equal(selected, found) {
		t.Errorf("the PodMonitor selects\n%v\nbut these have a port for metrics:\n%v", selected, found)
	}
}
