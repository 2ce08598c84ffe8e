package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/cmd/kubectl-akri/cli"
)

var (
	// invocation matches a command in a page, with its arguments.
	invocation = regexp.MustCompile("\\bkubectl akri ([a-z][^`\n|;)#]*)")
	// usedFlag matches a flag among arguments.
	usedFlag = regexp.MustCompile(` (--[a-z][a-z-]*|-[a-zA-Z])\b`)
)

// TestCommandsInPages checks that the flags exist with which pages call the commands.
func TestCommandsInPages(t *testing.T) {
	checked := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/handlers/*.md", "../../examples/*/README.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range invocation.FindAllSubmatch(text, -1) {
				command, _, err := newRoot(cli.Streams{}).Find(strings.Fields(string(match[1])))
				if err != nil || !command.Runnable() {
					continue // a sentence about kubectl akri
				}
				known := flagsOf(command)
				for _, used := range usedFlag.FindAllSubmatch(match[1], -1) {
					if checked++; !known[string(used[1])] {
						t.Errorf("%s: %s: there is no flag %s", page, match[0], used[1])
					}
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d flags were found", checked)
	}
}

// flagsOf returns the flags of a command with their dashes.
func flagsOf(command *cobra.Command) map[string]bool {
	flags := map[string]bool{}
	command.Flags().VisitAll(func(f *pflag.Flag) {
		flags["--"+f.Name] = true
		if f.Shorthand != "" {
			flags["-"+f.Shorthand] = true
		}
	})
	return flags
}

// TestHelp checks that help is printed to stdout and shows the command as a kubectl
// plugin.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"lint", "--help"}, {"help", "render"}} {
		var out, errOut bytes.Buffer
		root := newRoot(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut})
		root.SetArgs(args)
		if err := root.Execute(); err != nil || errOut.Len() > 0 || !strings.Contains(out.String(), "kubectl akri ") {
			t.Errorf("%v: %v\nstdout %s\nstderr %s", args, err, out.String(), errOut.String())
		}
	}
}

// TestUnknownCommand checks that the error for a word that is no command names those that
// exist.
func TestUnknownCommand(t *testing.T) {
	run(t, "", "rendr").want(t, 2, `error: kubectl akri has no command "rendr"; did you mean render?`, "See 'kubectl akri --help'")
	run(t, "", "nonsense").want(t, 2, `has no command "nonsense"; use one of check, completion, convert, `, "render, ", "!man,")
	run(t, "", "migrate", "plan").want(t, 2, `error: kubectl akri migrate has no command "plan"; use one of check`,
		"See 'kubectl akri migrate --help'")
	run(t, "", "completion", "csh").want(t, 2, "did you mean bash or fish or zsh?")
	run(t, "", "help", "rendr").want(t, 2, "did you mean render?")
	run(t, "", "help", "migrate", "plan").want(t, 2, "use one of check")
	run(t, "", "migrate").want(t, 0, "kubectl akri migrate [command]", "check")
	run(t, "", "migrate", "check", "x").want(t, 2, "See 'kubectl akri migrate check --help'")
}

// TestAccessFlagsOfCommands checks that only the commands that talk to a cluster take the
// flags that select it, and that one help lists these.
func TestAccessFlagsOfCommands(t *testing.T) {
	for _, args := range [][]string{
		{"lint", "--as=x"}, {"-n", "x", "render"}, {"convert", "--token=x"}, {"test", "--context=x"}, {"migrate", "check", "-n", "x"},
	} {
		run(t, "", args...).want(t, 2, "error: unknown ", "flag", "See 'kubectl akri ")
	}
	run(t, "", "--help").want(t, 0, "Flags of the commands that need a cluster:", "--as string", "--namespace string")
	const hint = `Use "kubectl akri --help" for the flags that select the cluster`
	run(t, "", "tree", "--help").want(t, 0, "--watch", hint, "!--as string")
	run(t, "", "lint", "--help").want(t, 0, "--filename", "!"+hint)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	run(t, "", "tree").want(t, 1, "error: no cluster is configured; ", "--kubeconfig", "KUBECONFIG")
}

// TestFiles checks that convert and render write every character to a file, which people apply
// later.
func TestFiles(t *testing.T) {
	const odd = "\u202e\u2066\u00ad"
	text := "apiVersion: akri.sh/v0\r\nkind: Configuration\r\nmetadata:\r\n  name: a\r\n  uid: x\r\nspec:\r\n" +
		"  discoveryHandler: {name: debugEcho, discoveryDetails: 'descriptions: [a]'}\r\n  instanceBrokerResources:\r\n" +
		"  - {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ INSTANCE_NAME }}'}, data: {a: \"" + odd + "\"}}\r\n"
	written := func(args ...string) string {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), os.Args[0], args...)
		command.Env, command.Stdin, command.Stdout, command.Stderr = append(os.Environ(), runMain+"=1"), strings.NewReader(text), out, os.Stderr
		err = command.Run()
		data, readErr := os.ReadFile(out.Name())
		if err := errors.Join(err, readErr, out.Close()); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got, want := written("convert", "-f", "-"), strings.Replace(text, "  uid: x\r\n", "", 1); got != want {
		t.Errorf("convert wrote %q, want %q", got, want)
	}
	for _, object := range strings.Split(written("render", "-f", "-"), "---\n")[1:] {
		var rendered struct{ Data map[string]string }
		if err := yaml.Unmarshal([]byte(object), &rendered); err != nil || rendered.Data["a"] != odd {
			t.Errorf("rendered %q, %v", rendered.Data["a"], err)
		}
	}
}
