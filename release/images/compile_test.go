package images

import (
	"strings"
	"testing"
)

// What go build says about packages becomes a line for every fifty; its errors are kept.
func TestProgress(t *testing.T) {
	var log strings.Builder
	packages := strings.Repeat("k8s.io/api/core/v1\n", 60)
	Options{Log: &log}.progress(strings.NewReader(packages+"# akri.sh/akri/agent\nagent/agent.go:1:2: undefined: x\n"+packages), "linux/arm64")
	const want = "images: compiling for linux/arm64: 50 packages so far\n" +
		"# akri.sh/akri/agent\nagent/agent.go:1:2: undefined: x\n" +
		"images: compiling for linux/arm64: 100 packages so far\n"
	if log.String() != want {
		t.Errorf("the log is\n%swant\n%s", &log, want)
	}
}
