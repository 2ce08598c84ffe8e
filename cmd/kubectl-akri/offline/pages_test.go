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

// TestPages lints the complete Configurations in the documentation.
func TestPages(t *testing.T) {
	found := 0
	for _, pattern := range []string{"../../../docs/*.md", "../../../docs/handlers/*.md"} {
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
				if !strings.Contains(string(match[1]), "kind: Configuration\nmetadata:") || strings.Contains(string(match[1]), "…") {
					continue
				}
				found++
				lint(t, page, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page has a Configuration")
	}
}

func lint(t *testing.T, page string, configuration []byte) {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "kubectl-akri", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(offline.Commands(cli.Streams{In: bytes.NewReader(configuration), Out: &out, Err: &out})...)
	root.SetArgs([]string{"lint", "-f", "-"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%s: %v\n%s\n%s", page, err, out.String(), configuration)
	}
}
