package builtin_test

import (
	"os/exec"
	"strings"
	"testing"

	"akri.sh/akri/discovery/builtin"
)

func TestWithout(t *testing.T) {
	all := len(builtin.Validators)
	rest, err := builtin.Without([]string{"debugEcho"})
	if err != nil || len(rest) != all-1 || rest["debugEcho"] != nil || len(builtin.Validators) != all {
		t.Errorf("%d of %d validators, %v", len(rest), all, err)
	}
	const want = `"debugecho": not a built-in handler: use `
	if _, err := builtin.Without([]string{"debugecho"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestValidators checks that each refuses a misspelled key with the text of a
// discovery/details.Fault.
func TestValidators(t *testing.T) {
	for name, validate := range builtin.Validators {
		if err := validate("noSuchKey: 1"); err == nil || !strings.Contains(err.Error(), "noSuchKey: unknown key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImports checks that a program that validates details does not become a handler.
func TestImports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		ours, isOurs := strings.CutPrefix(name, "akri.sh/akri/discovery/")
		if strings.HasPrefix(name, "google.golang.org/grpc") || name == "akri.sh/akri/discovery" ||
			isOurs && ours != "builtin" && !strings.HasSuffix(ours, "details") {
			t.Errorf("%s is among the dependencies: import only packages of details", name)
		}
	}
}
