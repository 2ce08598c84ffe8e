package readywhen

import (
	"errors"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"akri.sh/akri/internal/text"
)

// maxExpressionBytes limits how much of a condition an error quotes.
const maxExpressionBytes = 120

// failures are the errors of an evaluation. CEL's messages begin with the given words,
// and continue with values of the object, which may be secret.
var failures = []struct{ begins, means string }{
	{"no such key", "a field does not exist"},
	{"no such attribute", "a field does not exist"},
	{"no such field", "a field does not exist"},
	{"index ", "an index is out of range"},
	{"invalid ", "a value has another type or format"},
	{"no such overload", "a value has another type"},
	{"unsupported ", "a value has another type"},
	{"type conversion error", "a value cannot be converted"},
	{"strconv.", "a value cannot be converted"},
	{"parsing time", "a value cannot be converted"},
	{"time: ", "a value cannot be converted"},
	{"range error", "a value cannot be converted"},
	{"integer overflow", "a number is out of range"},
	{"unsigned integer overflow", "a number is out of range"},
	{"timestamp overflow", "a time is out of range"},
	{"unknown time zone", "a value has another type or format"},
	{"got ", "a value has another type"}, // what a macro such as all iterates over
	{"division by zero", "a division by zero"},
	{"modulus by zero", "a division by zero"},
	{"operation cancelled: actual cost limit exceeded", "the evaluation exceeds the cost limit"},
}

// explain returns what went wrong, in words of this package and, if known, with the part
// of the condition that went wrong, as its author wrote it.
func (c *Condition) explain(failure error) string {
	explained := "the condition cannot be evaluated"
	for _, known := range failures {
		if strings.HasPrefix(failure.Error(), known.begins) {
			explained = known.means
			break
		}
	}
	if part := c.part(failure); part != "" {
		explained += ": " + part
	}
	return explained
}

// part returns the part of the condition whose evaluation failed, or "" if it is not
// known.
func (c *Condition) part(failure error) string {
	found, ok := errors.AsType[*types.Err](failure)
	if !ok {
		return ""
	}
	var part string
	ast.PostOrderVisit(c.tree.Expr(), ast.NewExprVisitor(func(expr ast.Expr) {
		if expr.ID() != found.NodeID() || part != "" {
			return
		}
		if written, err := cel.ExprToString(expr, c.tree.SourceInfo()); err == nil {
			part = text.Truncate(strings.Join(strings.Fields(written), " "), maxExpressionBytes)
		}
	}))
	return part
}
