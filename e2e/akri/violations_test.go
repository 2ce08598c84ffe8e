package akri

import (
	"os"
	"strings"
	"testing"
)

// The tests look for the message that the agent logs.
func TestViolationIsWhatTheAgentLogs(t *testing.T) {
	source, err := os.ReadFile("../../agent/serve/deviceplugin/state.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), `s.log.Error("`+violation) {
		t.Errorf("the agent does not log %q: correct the constant", violation)
	}
}
