package offline_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/cmd/kubectl-akri/offline"
	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite expected output under testdata; read the diff")

// TestScripts runs the commands of each archive under testdata among its files. A
// line "$ lint a.yaml" of the comment is a command, "$ lint -f - < a.yaml" one with
// standard input, and "$ cat a.yaml" shows a file. What they print and how they end
// stands in the files whose names begin with the command's number.
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
		if command, is := strings.CutPrefix(line, "$ "); is {
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
		t.Errorf("%s\ngot\n%s\nwant\n%s\n(go test ./cmd/kubectl-akri/offline -update rewrites it)", archive.Comment, gotText, wantText)
	}
}

// runLine runs a command and tells what it printed and how it ended.
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
		err = run(offline.Streams{In: bytes.NewReader(in), Out: &stdout, Err: &stderr}, args)
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
	if code := offline.ExitCode(err); code != 0 {
		add("exit", fmt.Appendf(nil, "%d\n", code))
	}
	return files
}

// run is what the program does with its arguments.
func run(streams offline.Streams, args []string) error {
	root := &cobra.Command{Use: "kubectl-akri", SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl akri"}}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetArgs(args)
	root.AddCommand(offline.Commands(streams)...)
	return root.Execute()
}

// TestExitCode: an error of nobody's making is still a failure.
func TestExitCode(t *testing.T) {
	if code := offline.ExitCode(errors.New("x")); code != 1 {
		t.Errorf("got %d, want 1", code)
	}
}
