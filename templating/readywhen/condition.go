package readywhen

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"akri.sh/akri/internal/text"
)

const (
	// MaxBytes is the length limit of a condition.
	MaxBytes = 1024
	// maxNesting bounds the recursion of the parser.
	maxNesting = 50
)

// Condition is a compiled condition.
type Condition struct {
	source  string
	tree    *ast.AST
	program cel.Program
}

// environment returns CEL's standard library, with self and without regular
// expressions: compiling a short one can be expensive, and CEL's cost does not
// include it.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	withoutRegex := env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction(overloads.Matches))
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(withoutRegex)),
		cel.Variable("self", cel.DynType),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(MaxBytes),
	)
})

// Compile compiles a condition, which must yield true or false.
func Compile(source string) (c *Condition, err error) {
	defer func() {
		if p := recover(); p != nil { // no such input is known; a new one must not crash the process
			c, err = nil, errors.New("the condition cannot be compiled")
		}
	}()
	if len(source) > MaxBytes {
		return nil, fmt.Errorf("a condition may have %d bytes, this one has %d", MaxBytes, len(source))
	}
	celEnv, err := environment()
	if err != nil {
		return nil, err
	}
	tree, issues := celEnv.Compile(source)
	if issues.Err() != nil {
		return nil, errors.New(firstIssue(issues))
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the condition yields %s, not true or false", out)
	}
	program, err := celEnv.Program(tree, cel.CostTracking(costs{}), cel.CostLimit(maxCost))
	if err != nil {
		return nil, errors.New("the condition cannot be compiled")
	}
	return &Condition{source: source, tree: tree.NativeRep(), program: program}, nil
}

// firstIssue returns the first mistake that CEL found, on one line.
func firstIssue(issues *cel.Issues) string {
	const maxBytes = 200
	found := issues.Errors()
	if len(found) == 0 {
		return "the condition cannot be parsed"
	}
	message := strings.Join(strings.Fields(found[0].Message), " ")
	message = strings.TrimPrefix(message, "Syntax error: ")
	return fmt.Sprintf("%s at column %d", text.Truncate(message, maxBytes), found[0].Location.Column()+1)
}

// String returns the condition as written.
func (c *Condition) String() string {
	if c == nil {
		return ""
	}
	return c.source
}

// MarshalText returns the condition as written.
func (c *Condition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Holds evaluates the condition over a live object. A missing field is an error, as
// in an object that was just created; conditions check with has() first. Errors
// contain nothing of the object.
func (c *Condition) Holds(self map[string]any) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil { // no such input is known; a new one must not crash the process
			holds, err = false, errors.New("ready-when: the condition cannot be evaluated")
		}
	}()
	value, _, err := c.program.Eval(map[string]any{"self": self})
	if err != nil {
		return false, errors.New("ready-when: " + c.explain(err))
	}
	result, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("ready-when: the condition yields %s, not true or false", value.Type().TypeName())
	}
	return bool(result), nil
}
