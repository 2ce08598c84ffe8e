package offline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/schema"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

type testOptions struct {
	update bool
}

func newTest(streams cli.Streams) *cobra.Command {
	var o testOptions
	command := &cobra.Command{
		Use:   "test [DIR]...",
		Short: "Render Configurations and compare the result with the expected output",
		Long: `Render Configurations and compare the result with the expected output.

A test is a directory with a configuration.yaml, an expected.yaml and optionally an
instances.yaml. All tests in and below DIR are run; DIR/... means the same. The
default is the current directory.

A test also fails if the API server would reject its Configuration or one of its
Instances: a field that does not exist, or a value that its type does not allow.`,
		Example: `  kubectl akri test examples
  kubectl akri test --update examples/debug-echo   # then read git diff`,
		Args: cobra.ArbitraryArgs,
	}
	command.Flags().BoolVar(&o.update, "update", false, "write the current output to expected.yaml")
	command.RunE = func(_ *cobra.Command, args []string) error { return o.run(streams, args) }
	return command
}

// counts counts the results of the tests.
type counts struct{ passed, failed, written int }

func (o *testOptions) run(streams cli.Streams, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	var c counts
	for _, arg := range args {
		root := cmp.Or(strings.TrimSuffix(strings.TrimSuffix(filepath.ToSlash(arg), "..."), "/"), ".")
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return cli.Failed(fmt.Errorf("directory %s does not exist", root))
		}
		fsys := os.DirFS(root)
		dirs, err := cases.Find(fsys)
		if err != nil {
			return cli.Failed(fmt.Errorf("search %s: %w", root, err))
		}
		if len(dirs) == 0 {
			return cli.Failed(fmt.Errorf("no configuration.yaml in or below %s: a test is a directory with configuration.yaml, "+
				"expected.yaml (written by --update) and optionally instances.yaml", root))
		}
		for _, dir := range dirs {
			result, err := cases.Run(fsys, dir)
			if err := o.report(streams, &c, path.Join(root, dir), result, err); err != nil {
				return cli.Failed(err)
			}
		}
	}
	return c.summarize(streams)
}

// report prints the result of one test, or updates its expected output.
func (o *testOptions) report(streams cli.Streams, c *counts, dir string, result cases.Result, err error) error {
	expected := path.Join(dir, cases.ExpectedFile)
	refused := schemaMistakes(result.Documents)
	switch {
	case err != nil:
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n         %v\n", dir, err)
	case len(refused) > 0: // no expected output makes these right
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n         %s\n", dir, strings.Join(refused, "\n         "))
	case result.Passed():
		c.passed++
		fmt.Fprintf(streams.Out, "ok       %s\n", dir)
	case o.update:
		c.written++
		fmt.Fprintf(streams.Out, "written  %s\n", expected)
		return os.WriteFile(filepath.FromSlash(expected), result.Got, 0o644)
	case result.Want == nil:
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n         %s does not exist: write it with --update, and review it\n", dir, cases.ExpectedFile)
	default:
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n%s", dir, diff(expected, result))
	}
	return nil
}

// schemaMistakes describes the mistakes for which the API server refuses documents.
func schemaMistakes(documents []*source.Document) []string {
	var mistakes []string
	for _, d := range documents {
		findings, _ := schema.Check(d.Object(), d)
		for _, f := range findings {
			mistakes = append(mistakes, f.Error())
		}
	}
	return mistakes
}

// diff returns the lines that are expected but not rendered (-), and the opposite (+).
func diff(expected string, result cases.Result) string {
	text := udiff.Unified(expected, "rendered", string(result.Want), string(result.Got))
	lines := strings.SplitAfter(strings.TrimRight(text, "\n")+"\n", "\n")
	return "         " + strings.TrimRight(strings.Join(lines, "         "), " ")
}

// summarize prints the counts and returns an error if a test failed.
func (c counts) summarize(streams cli.Streams) error {
	summary := fmt.Sprintf("%d passed", c.passed)
	if c.written > 0 {
		summary += fmt.Sprintf(", %d written", c.written)
	}
	if c.failed == 0 {
		fmt.Fprintln(streams.Out, summary)
		return nil
	}
	fmt.Fprintf(streams.Out, "%s, %d failed\n", summary, c.failed)
	return errors.New(manifest.Count(c.failed, "test") +
		" failed: correct the templates or, if the new output is right, run again with --update")
}
