package akri

import (
	"context"
	"fmt"
	"strings"
)

// violation is in the line that an agent logs when an invariant of its slots is violated.
const violation = "An invariant of the slots is violated"

// Test is a test, which errors fail. Programs use this package, too: it does not import
// testing.
type Test interface {
	Helper()
	Error(arguments ...any)
}

// ReportViolations fails a test if an agent has logged a violated invariant.
func ReportViolations(ctx context.Context, t Test, c Client) {
	t.Helper()
	found, err := Violations(ctx, c)
	if err != nil {
		t.Error(err)
	}
	for _, line := range found {
		t.Error(line)
	}
}

// Violations returns the lines in which agents have logged a violated invariant, of the
// containers that run and of those before them. The logs also have
// what has been violated only for a moment, and by an agent that was killed.
func Violations(ctx context.Context, c Client) ([]string, error) {
	pods, err := c.Kubectl(ctx, "--namespace", Namespace, "get", "pods", "--selector=app.kubernetes.io/name=akri-agent",
		`--output=jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount}{"\n"}{end}`)
	if err != nil {
		return nil, fmt.Errorf("list the agents: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(pods)) {
		name, restarts, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, previous := range []bool{true, false} {
			if previous && (restarts == "" || restarts == "0") {
				continue
			}
			log, err := c.Kubectl(ctx, "--namespace", Namespace, "logs", name, fmt.Sprintf("--previous=%v", previous))
			if err != nil {
				continue // the container is being replaced
			}
			for entry := range strings.Lines(string(log)) {
				if strings.Contains(entry, violation) {
					found = append(found, name+": "+strings.TrimSpace(entry))
				}
			}
		}
	}
	return found, nil
}
