package manpages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600") // January 2026
	root := &cobra.Command{Use: "program", Short: "Do things"}
	walk := &cobra.Command{Use: "walk NAME", Short: "Walk", Run: func(*cobra.Command, []string) {}}
	walk.Flags().Bool("fast", false, "walk fast")
	root.AddCommand(walk, NewCommand())
	dir := t.TempDir()
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "program-walk.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"program-walk", "walk fast", "Jan 2026", "Akri v"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if pages, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(pages) < 2 {
		t.Errorf("the pages are %v, %v", pages, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "program-man.1")); err == nil {
		t.Error("a hidden command has a page")
	}
	root.SetArgs([]string{"man", filepath.Join(dir, "absent")})
	root.SilenceErrors, root.SilenceUsage = true, true
	if err := root.Execute(); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}
