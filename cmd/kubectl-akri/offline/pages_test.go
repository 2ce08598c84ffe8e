package offline_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/offline"
)

// snippet matches a block of YAML in a page.
var snippet = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// fragment is the beginning of a Configuration whose discoveryHandler a page shows.
const fragment = "apiVersion: akri.sh/v0\nkind: Configuration\nmetadata: {name: fragment}\nspec:\n"

// TestPages lints the Configurations in the documentation, and what only shows how a
// discovery handler is configured. None of them has anything that a reader would be warned of.
func TestPages(t *testing.T) {
	found, fragments := 0, 0
	for _, pattern := range []string{"../../../*.md", "../../../docs/*.md", "../../../docs/handlers/*.md", "../../../examples/*/README.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range snippet.FindAllSubmatch(text, -1) {
				switch yaml := string(match[1]); {
				case strings.Contains(yaml, "…"):
				case strings.Contains(yaml, "kind: Configuration\nmetadata:"):
					found++
					lint(t, page, match[1])
				case strings.HasPrefix(yaml, "discoveryHandler:"):
					fragments++
					lint(t, page, []byte(fragment+"  "+strings.ReplaceAll(strings.TrimSpace(yaml), "\n", "\n  ")))
				}
			}
		}
	}
	if found < 7 || fragments < 5 {
		t.Errorf("only %d Configurations and %d fragments were found", found, fragments)
	}
}

func lint(t *testing.T, page string, configuration []byte) {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "kubectl-akri", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(offline.Commands(cli.Streams{In: bytes.NewReader(configuration), Out: &out, Err: &out})...)
	root.SetArgs([]string{"lint", "-f", "-"})
	if err := root.ExecuteContext(t.Context()); err != nil || strings.Contains(out.String(), "warning: ") {
		t.Errorf("%s: %v\n%s\n%s", page, err, out.String(), configuration)
	}
}
