package functions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// kind is what an argument may be.
type kind struct {
	called string   // in messages
	others []string // what value.KindName calls what it may be, besides called
}

// kinds are what Function.takes may name. A count is a whole number that counts something in a
// text or a list.
var kinds = map[string]kind{
	"any":      {"anything", []string{"nothing", "true or false", "a whole number", "a number", "a string", "a list", "a map"}},
	"scalar":   {"a string, a number, true or false", []string{"nothing", "true or false", "a whole number", "a number", "a string"}},
	"sized":    {"a string, a list or a map", []string{"a string", "a list", "a map"}},
	"sequence": {"a list or a string", []string{"a list", "a string"}},
	"number":   {"a number", []string{"a whole number"}},
	"int":      {called: "a whole number"}, "count": {called: "a whole number"}, "bool": {called: "true or false"},
	"string": {called: "a string"}, "list": {called: "a list"}, "map": {called: "a map"},
}

// parameters are what the arguments of a function must be.
type parameters struct {
	kinds    []string // the last is that of all further arguments
	min, max int      // arguments
}

// parametersOf parses Function.takes. A kind that ends in ? may be left out; the last may end
// in + or *, and is then repeated, at least once or not at all.
func parametersOf(takes string) (p parameters) {
	for word := range strings.FieldsSeq(takes) {
		kind := strings.TrimRight(word, "?+*")
		if kinds[kind].called == "" { // a programming error: every test fails
			panic("there is no kind " + kind)
		}
		p.kinds = append(p.kinds, kind)
		switch word[len(kind):] {
		case "":
			p.min, p.max = p.min+1, p.max+1
		case "?":
			p.max++
		case "+":
			p.min, p.max = p.min+1, math.MaxInt
		case "*":
			p.max = math.MaxInt
		}
	}
	return p
}

// count describes how many arguments a function takes.
func (p *parameters) count() string {
	plural := func(n int) string {
		if n == 1 {
			return "1 argument"
		}
		return fmt.Sprintf("%d arguments", n)
	}
	switch {
	case p.max == math.MaxInt:
		return "at least " + plural(p.min)
	case p.min == p.max:
		return plural(p.min)
	}
	return fmt.Sprintf("%d to %s", p.min, plural(p.max))
}

// check returns an error unless all arguments are what they must be.
func (p *parameters) check(args []any) error {
	for i := range args {
		if err := check(args, i, p.kinds[min(i, len(p.kinds)-1)]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless an argument is of a kind.
func check(args []any, i int, name string) error {
	found, want := value.KindName(args[i]), kinds[name]
	if found != want.called && !slices.Contains(want.others, found) {
		return wrongArgument(args, i, want.called)
	}
	if n, _ := args[i].(int64); name == "count" && (n < -budget.MaxObjectBytes || n > budget.MaxObjectBytes) {
		return fmt.Errorf("argument %d must be between %d and %d", i+1, -budget.MaxObjectBytes, budget.MaxObjectBytes)
	}
	return nil
}

func toNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// errArgument is the cause if an argument has the wrong type.
var errArgument = errors.New("argument")

// wrongArgument names types only, never values.
func wrongArgument(args []any, i int, want string) error {
	hint := ""
	_, isText := args[i].(string)
	switch {
	case want == "a string" && value.IsScalar(args[i]) && args[i] != nil:
		hint = "turn it into a string with toString"
	case isText && (want == "a whole number" || want == "a number"):
		hint = "device properties are strings: turn it into a number with int or float64"
	case args[i] == nil:
		hint = `provide a default: ( … | default "..." )`
	}
	return fault.Hintf(hint, "%w %d must be %s, not %s", errArgument, i+1, want, value.KindName(args[i]))
}
