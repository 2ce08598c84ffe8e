package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// severities are the values of the label severity.
var severities = []string{"critical", "warning", "info"}

// TestRunbooks checks that each alert links a section of docs/runbooks.md, and that there is
// no other section.
func TestRunbooks(t *testing.T) {
	page := string(read(t, "docs/runbooks.md"))
	var documented []string
	for _, section := range strings.Split(page, "\n### ")[1:] {
		name, _, _ := strings.Cut(section, "\n")
		documented = append(documented, name)
	}
	var existing []string
	for _, alert := range alerts(t) {
		existing = append(existing, alert.Alert)
		if want := "docs/runbooks.md#" + strings.ToLower(alert.Alert); alert.Annotations["runbook"] != want {
			t.Errorf("%s: the annotation runbook is %q, want %s", alert.Alert, alert.Annotations["runbook"], want)
		}
		if !slices.Contains(severities, alert.Labels["severity"]) {
			t.Errorf("%s: the severity is %q, want one of %v", alert.Alert, alert.Labels["severity"], severities)
		}
	}
	slices.Sort(existing)
	if slices.Sort(documented); !slices.Equal(existing, documented) {
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
