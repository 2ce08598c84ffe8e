package offline_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/offline"
)

var update = flag.Bool("update", false, "rewrite the expected output under testdata; review the diff")

// TestScripts runs the commands of each archive under testdata in a directory with
// its files. In the comment, a line "$ lint a.yaml" is a command, "$ lint -f - <
// a.yaml" a command with standard input, and "$ cat a.yaml" prints a file. Files whose
// names start with the number of a command hold its expected output and exit code.
func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		absolute, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { script(t, absolute) })
	}
}

func script(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var input, want []txtar.File
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "$") {
			want = append(want, f)
			continue
		}
		input = append(input, f)
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []txtar.File
	number := 0
	for line := range strings.Lines(string(archive.Comment)) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			number++
			got = append(got, runLine(t, number, command)...)
		}
	}
	if number == 0 {
		t.Fatal("the script has no command")
	}
	expected := &txtar.Archive{Comment: archive.Comment, Files: append(input, got...)}
	if *update {
		if err := os.WriteFile(name, txtar.Format(expected), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	gotText, wantText := txtar.Format(&txtar.Archive{Files: got}), txtar.Format(&txtar.Archive{Files: want})
	if !bytes.Equal(gotText, wantText) {
		t.Errorf("%s\n(go test ./cmd/kubectl-akri/offline -update rewrites it): -want +got\n%s", archive.Comment, cmp.Diff(wantText, gotText))
	}
}

// runLine runs a command and returns its output and exit code as files.
func runLine(t *testing.T, number int, line string) []txtar.File {
	line, stdin, _ := strings.Cut(strings.TrimSpace(line), " < ")
	args := strings.Fields(line)
	var in []byte
	if stdin != "" {
		var err error
		if in, err = os.ReadFile(stdin); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	var err error
	if args[0] == "cat" {
		var data []byte
		if data, err = os.ReadFile(args[1]); err != nil {
			t.Fatal(err)
		}
		stdout.Write(data)
	} else {
		err = run(cli.Streams{In: bytes.NewReader(in), Out: &stdout, Err: &stderr}, args)
	}
	var files []txtar.File
	add := func(what string, data []byte) {
		if len(data) > 0 {
			if !bytes.HasSuffix(data, []byte("\n")) {
				data = append(data, "(no newline at the end)\n"...)
			}
			files = append(files, txtar.File{Name: fmt.Sprintf("$%d %s", number, what), Data: data})
		}
	}
	add("stdout", stdout.Bytes())
	if err != nil {
		fmt.Fprintln(&stderr, "error:", err)
	}
	add("stderr", stderr.Bytes())
	if code := cli.ExitCode(err); code != 0 {
		add("exit", fmt.Appendf(nil, "%d\n", code))
	}
	return files
}

// run runs the program with arguments.
func run(streams cli.Streams, args []string) error {
	root := &cobra.Command{Use: "kubectl-akri", SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl akri"}}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetArgs(args)
	root.AddCommand(offline.Commands(streams)...)
	cli.ReportUsage(root)
	return root.Execute()
}
