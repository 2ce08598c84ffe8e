package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"akri.sh/akri/templating"
)

// rules evaluates the CEL rules of a schema. A rule that cannot be evaluated is a
// problem, as for the API server, unless the value is invalid for another reason:
// that is reported already, and the rule fails because of it.
func (c *checker) rules(n *node, value any, valid bool) {
	for _, r := range n.Rules {
		if isTransition(r) {
			continue
		}
		result, err := evaluate(r.Rule, value)
		switch {
		case err != nil && valid:
			c.report("", "rule %q cannot be evaluated: %v", r.Rule, err)
		case err == nil && !result:
			c.violated(r, value)
		}
	}
}

// violated reports the message of a rule, at the field that the message starts with.
func (c *checker) violated(r celRule, value any) {
	cause, hint := r.Message, ""
	if before, after, found := strings.Cut(r.Message, ": "); found {
		cause, hint = before, after
	}
	at := slices.Concat(c.path, mentioned(cause, value))
	c.problems = append(c.problems, Mistake{Place: at, Cause: cause, Hint: hint})
}

// isTransition reports whether a rule applies only to two versions of an object, which
// only the API server has.
func isTransition(r celRule) bool { return strings.Contains(r.Rule, "oldSelf") && !r.OptionalOldSelf }

// mentioned returns the path of the field that a message starts with, or nil if the
// value does not have it.
func mentioned(message string, value any) templating.Path {
	first, _, _ := strings.Cut(message, " ")
	keys := strings.Split(first, ".")
	for _, key := range keys {
		fields, ok := value.(map[string]any)
		if !ok || fields[key] == nil {
			return nil
		}
		value = fields[key]
	}
	return path(keys...)
}

// evaluate returns the result of a rule for a value.
func evaluate(rule string, value any) (bool, error) {
	program, err := compile(rule)
	if err != nil {
		return false, err
	}
	result, _, err := program.Eval(map[string]any{"self": withoutNull(value), "oldSelf": types.OptionalNone})
	if err != nil {
		return false, err
	}
	verdict, ok := result.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it yields %s instead of a bool", result.Type().TypeName())
	}
	return bool(verdict), nil
}

// maxCost limits the evaluation of a rule.
const maxCost = 1_000_000

var programs sync.Map // of cel.Program, by rule

// environment returns the part of the API server's CEL environment that the rules use.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType),
		cel.OptionalTypes(),
		cel.Function("sum", cel.MemberOverload("list_int_sum", []*cel.Type{cel.ListType(cel.IntType)}, cel.IntType, cel.UnaryBinding(sum))),
	)
})

// sum returns the sum of a list of integers.
func sum(list ref.Val) ref.Val {
	var total ref.Val = types.IntZero
	for i := list.(traits.Lister).Iterator(); i.HasNext() == types.True; {
		total = total.(types.Int).Add(i.Next())
		if types.IsError(total) {
			return total
		}
	}
	return total
}

// compile returns the program of a rule. A test compiles all rules of the definitions
// that are used here.
func compile(rule string) (cel.Program, error) {
	if p, found := programs.Load(rule); found {
		return p.(cel.Program), nil
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(rule)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, err
	}
	programs.Store(rule, program)
	return program, nil
}

// withoutNull returns a copy of a value without null fields, as the API server sees it.
func withoutNull(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, element := range v {
			if element != nil {
				m[key] = withoutNull(element)
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, element := range v {
			l[i] = withoutNull(element)
		}
		return l
	}
	return value
}
