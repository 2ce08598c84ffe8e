package schema

import (
	"strings"
	"sync"

	"akri.sh/akri/templating"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// rules evaluates the conditions of a schema. One that cannot be evaluated, because
// fields are missing or of a wrong type, says nothing: that is told already. Those
// about changes need two versions of an object and are left to the API server.
func (c *checker) rules(n *node, value any) {
	for _, r := range n.Rules {
		if strings.Contains(r.Rule, "oldSelf") {
			continue
		}
		program := compiled(r.Rule)
		if program == nil {
			continue
		}
		result, _, err := program.Eval(map[string]any{"self": withoutNull(value)})
		if err != nil || result != types.False {
			continue
		}
		cause, hint := r.Message, ""
		if before, after, found := strings.Cut(r.Message, ": "); found {
			cause, hint = before, after
		}
		if at := mentioned(cause, value); at != nil {
			c.problems = append(c.problems, Problem{Path: append(c.path[:len(c.path):len(c.path)], at...), Cause: cause, Hint: hint})
			continue
		}
		c.report(hint, "%s", cause)
	}
}

// mentioned is the field that a message begins with, if the value has it.
func mentioned(message string, value any) templating.Path {
	first, _, _ := strings.Cut(message, " ")
	keys := strings.Split(first, ".")
	for _, key := range keys {
		fields, isMap := value.(map[string]any)
		if !isMap || fields[key] == nil {
			return nil
		}
		value = fields[key]
	}
	return path(keys...)
}

var programs sync.Map // of cel.Program, by rule

// compiled is the program of a rule, or nil. The test compiles all rules.
func compiled(rule string) cel.Program {
	if p, found := programs.Load(rule); found {
		return p.(cel.Program)
	}
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		return nil
	}
	ast, issues := env.Compile(rule)
	if issues.Err() != nil {
		return nil
	}
	program, err := env.Program(ast, cel.CostLimit(1_000_000))
	if err != nil {
		return nil
	}
	programs.Store(rule, program)
	return program
}

// withoutNull copies a value without the fields that are null, as the API server
// sees it.
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
