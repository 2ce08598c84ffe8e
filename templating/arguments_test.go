package templating_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/google/go-cmp/cmp"

	"akri.sh/akri/templating/internal/functions"
)

// argumentKinds are expressions for one value of each kind, with the name of the kind.
var argumentKinds = [][2]string{
	{`(coalesce "")`, "nothing"}, {"true", "true or false"}, {"1", "a whole number"}, {"1.5", "a number"}, {`"x"`, "a string"},
	{"(list 1)", "a list"}, {`(dict "a" 1)`, "a map"},
}

// TestArguments calls each function as in its example, with one argument replaced by a
// value of each kind, and compares what is refused with testdata/errors/arguments.txt. A
// line has the function, the position of the argument, the message and the kinds.
func TestArguments(t *testing.T) {
	const file = "testdata/errors/arguments.txt"
	var lines []string
	for _, f := range allFunctions() {
		args := exampleArguments(t, f)
		for i := range args {
			lines = append(lines, refusedKinds(t, f.Name, args, i)...)
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test ./templating -update rewrites it; read the diff): -want +got\n%s", file, cmp.Diff(string(want), got))
	}
}

// refusedKinds returns a line for each message about the argument at a position.
func refusedKinds(t *testing.T, name string, args []string, position int) []string {
	t.Helper()
	kinds := map[string][]string{} // by message
	var order []string
	for _, kind := range argumentKinds {
		replaced := slices.Clone(args)
		replaced[position] = kind[0]
		_, diags := evaluate(t, fmt.Sprintf("{{ empty (%s %s) }}", name, strings.Join(replaced, " ")))
		if len(diags) == 0 {
			continue
		}
		message := diags[0].Cause.Error()
		if before, found := strings.CutSuffix(message, ", not "+kind[1]); found {
			message = before
		}
		if kinds[message] == nil {
			order = append(order, message)
		}
		kinds[message] = append(kinds[message], kind[1])
	}
	var lines []string
	for _, message := range order {
		lines = append(lines, fmt.Sprintf("%s %d: %s: not %s", name, position+1, message, strings.Join(kinds[message], ", ")))
	}
	return lines
}

// exampleArguments returns the arguments in the example of a function, as they are
// written.
func exampleArguments(t *testing.T, f *functions.Function) []string {
	t.Helper()
	tree := parse.New("example")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse("{{ "+f.Example+" }}", "", "", map[string]*parse.Tree{}); err != nil {
		t.Fatal(err)
	}
	args, found := argumentsIn(tree.Root.Nodes[0].(*parse.ActionNode).Pipe, f.Name)
	if !found {
		t.Fatalf("the example of %s does not call it: %s", f.Name, f.Example)
	}
	return args
}

// argumentsIn returns the arguments of the first call of a function in a pipeline.
func argumentsIn(pipe *parse.PipeNode, name string) (args []string, found bool) {
	for i, command := range pipe.Cmds {
		if command.Args[0].String() == name {
			for _, arg := range command.Args[1:] {
				if _, ok := arg.(*parse.PipeNode); ok {
					args = append(args, "("+arg.String()+")")
					continue
				}
				args = append(args, arg.String())
			}
			if i > 0 {
				args = append(args, "("+pipe.Cmds[i-1].String()+")")
			}
			return args, true
		}
		for _, arg := range command.Args {
			if chain, ok := arg.(*parse.ChainNode); ok {
				arg = chain.Node
			}
			if inner, ok := arg.(*parse.PipeNode); ok {
				if args, found = argumentsIn(inner, name); found {
					return args, true
				}
			}
		}
	}
	return nil, false
}
