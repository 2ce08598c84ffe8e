package handlertest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/discovery/handlertest"
)

// TestDocumentedHandler builds the handler that docs/handlers.md shows, and checks that it
// keeps the contract.
func TestDocumentedHandler(t *testing.T) {
	page, err := os.ReadFile("../../docs/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go\n")
	code, _, _ = strings.Cut(code, "```\n")
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "doors")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := func(dir string) {
		command := exec.CommandContext(t.Context(), program)
		command.Env = append(os.Environ(), "DISCOVERY_HANDLERS_DIRECTORY="+dir, "POD_IP=")
		command.Stderr = t.Output()
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill() // it serves until then
			_ = command.Wait()
		})
	}
	handlertest.RunProgram(t, start, handlertest.Case{MinDevices: 1, Invalid: []string{"doors: [front]"}})
}
