package offline

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"akri.sh/akri/templating/cases"
	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
)

type testOptions struct {
	update bool
}

func newTest(streams Streams) *cobra.Command {
	var o testOptions
	command := &cobra.Command{
		Use:   "test [DIR]...",
		Short: "Render folders of Configurations and compare with what is expected",
		Long: `Render folders of Configurations and compare with what is expected.

A folder has a configuration.yaml, perhaps an instances.yaml, and an
expected.yaml. DIR stands for all such folders in and below it, and DIR/... is
the same; without it, the current folder.`,
		Example: `  kubectl akri test examples
  kubectl akri test --update examples/debug-echo   # then read git diff`,
		Args: cobra.ArbitraryArgs,
	}
	command.Flags().BoolVar(&o.update, "update", false, "write expected.yaml from what is rendered now")
	command.RunE = func(_ *cobra.Command, args []string) error { return o.run(streams, args) }
	return command
}

// counts is what became of the cases.
type counts struct{ passed, failed, written int }

func (o *testOptions) run(streams Streams, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	var c counts
	for _, arg := range args {
		root := strings.TrimSuffix(strings.TrimSuffix(filepath.ToSlash(arg), "..."), "/")
		if root == "" {
			root = "."
		}
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return unreadable(fmt.Errorf("there is no folder %s", root))
		}
		fsys := os.DirFS(root)
		dirs, err := cases.Find(fsys)
		if err != nil {
			return unreadable(fmt.Errorf("%s cannot be searched: %w", root, err))
		}
		if len(dirs) == 0 {
			return unreadable(fmt.Errorf("there is no configuration.yaml in or below %s: a test is a folder with configuration.yaml, expected.yaml (--update writes it) and perhaps instances.yaml", root))
		}
		for _, dir := range dirs {
			result, err := cases.Run(fsys, dir)
			if err := o.one(streams, &c, path.Join(root, dir), result, err); err != nil {
				return unreadable(err)
			}
		}
	}
	return c.report(streams)
}

// one reports a case, or writes what is expected of it.
func (o *testOptions) one(streams Streams, c *counts, dir string, result cases.Result, err error) error {
	expected := path.Join(dir, cases.ExpectedFile)
	switch {
	case err != nil:
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n         %v\n", dir, err)
	case result.Passed():
		c.passed++
		fmt.Fprintf(streams.Out, "ok       %s\n", dir)
	case o.update:
		c.written++
		fmt.Fprintf(streams.Out, "written  %s\n", expected)
		return os.WriteFile(filepath.FromSlash(expected), result.Got, 0o644)
	case result.Want == nil:
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n         there is no %s: write it with --update, and read it\n", dir, cases.ExpectedFile)
	default:
		c.failed++
		fmt.Fprintf(streams.Out, "FAIL     %s\n%s", dir, diff(expected, result))
	}
	return nil
}

// diff shows what is expected and not rendered (-), and the opposite (+).
func diff(expected string, result cases.Result) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(result.Want)), FromFile: expected,
		B: difflib.SplitLines(string(result.Got)), ToFile: "rendered",
		Context: 3,
	})
	if err != nil { // writing to memory does not fail
		return err.Error() + "\n"
	}
	lines := strings.SplitAfter(strings.TrimRight(text, "\n")+"\n", "\n")
	return "         " + strings.TrimRight(strings.Join(lines, "         "), " ")
}

func (c counts) report(streams Streams) error {
	summary := fmt.Sprintf("%d passed", c.passed)
	if c.written > 0 {
		summary += fmt.Sprintf(", %d written", c.written)
	}
	if c.failed == 0 {
		fmt.Fprintln(streams.Out, summary)
		return nil
	}
	fmt.Fprintf(streams.Out, "%s, %d failed\n", summary, c.failed)
	return &exitError{exitWrong, errors.New(plural(c.failed, "test") + " failed: correct the templates or, when the new output is right, run again with --update")}
}
