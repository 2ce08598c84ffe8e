package expr

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/functions"
)

// maxSuggestions is the number of faults in one text that come with a similar name.
// The search is the most expensive part of compiling.
const maxSuggestions = 50

// pipe resolves A | B | C: C is called with the result of B as its last argument,
// and B with A.
func (r *resolver) pipe(pipe *parse.PipeNode) expr {
	if r.depth++; r.depth > budget.MaxDepth {
		r.reportf(pipe, "use $variables", "parentheses and blocks are nested more than %d deep", budget.MaxDepth)
		return invalid
	}
	defer func() { r.depth-- }()
	var v expr
	for _, command := range pipe.Cmds {
		v = r.command(command, v)
	}
	return v
}

func (r *resolver) command(command *parse.CommandNode, piped expr) expr {
	r.nodes++
	first, rest := command.Args[0], command.Args[1:]
	if name, ok := first.(*parse.IdentifierNode); ok {
		if f, found := functions.Lookup(name.Ident); found {
			return r.call(f, name, rest, piped)
		}
	}
	v := r.operand(first)
	switch {
	case v == invalid: // reported
	case len(rest) > 0:
		r.reportf(rest[0], "put the function first: {{ function "+shorten(first)+" … }}",
			"%s is a value and takes no arguments", shorten(first))
	case piped != nil:
		r.reportf(first, "write a function after |, such as default or quote",
			"%s is a value; a value cannot be piped into it", shorten(first))
	}
	return v
}

func (r *resolver) call(f *functions.Function, name *parse.IdentifierNode, args []parse.Node, piped expr) expr {
	call := &callExpr{function: f, offset: int(name.Position())}
	for _, arg := range args {
		call.args = append(call.args, r.operand(arg))
	}
	if piped != nil {
		call.args = append(call.args, piped)
	}
	if err := f.CheckCount(len(call.args)); err != nil {
		r.report(fault.At(call.offset, err))
	}
	if f.Name == "fail" && slices.ContainsFunc(call.args, isComputed) {
		r.reportf(name, `write {{ fail "the message" }}`,
			"the message of fail must be a literal: the value of a property must not end up in messages")
	}
	r.noteKey(call)
	if f.Name == "and" || f.Name == "or" {
		return &shortCircuitExpr{callExpr: *call, stopAt: f.Name == "or"}
	}
	return call
}

func isComputed(arg expr) bool {
	_, isLiteral := arg.(*literalExpr)
	return !isLiteral
}

// operand resolves one value: a literal, a name, a chain of fields or an
// expression in parentheses.
func (r *resolver) operand(node parse.Node) expr {
	r.nodes++
	switch n := node.(type) {
	case *parse.IdentifierNode:
		return r.name(n)
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			r.reportf(n, "set it first, in an expression of its own", "a $variable cannot be set inside parentheses")
		}
		return r.pipe(n)
	case *parse.ChainNode:
		return r.fields(r.operand(n.Node), n, n.Field)
	case *parse.FieldNode:
		if !r.inner {
			const message = "%s has no meaning here: the dot has a value only inside range and with"
			r.reportf(n, r.dotHint(n.Ident[0]), message, shorten(n))
			return invalid
		}
		return r.fields(dotExpr{}, n, n.Ident)
	case *parse.DotNode:
		if !r.inner {
			r.reportf(n, r.meantHint(), "the dot has a value only inside range and with")
			return invalid
		}
		return dotExpr{}
	case *parse.VariableNode:
		return r.declaredVariable(n)
	case *parse.StringNode:
		return &literalExpr{value: n.Text}
	case *parse.BoolNode:
		return &literalExpr{value: n.True}
	case *parse.NumberNode:
		return r.number(n)
	case *parse.NilNode:
		r.reportf(n, `for an empty string write ""`, "nil is not a value")
	default:
		r.reportf(n, "", "%s cannot be used here", n)
	}
	return invalid
}

// declaredVariable resolves $x and $x.FIELD.
func (r *resolver) declaredVariable(n *parse.VariableNode) expr {
	if slot := r.slot(n.Ident[0]); slot >= 0 {
		return r.fields(slotExpr(slot), n, n.Ident[1:])
	}
	if n.Ident[0] == "$" && len(n.Ident) > 1 {
		r.reportf(n, r.dotHint(n.Ident[1]), "$ has no meaning here: variables are bare words")
		return invalid
	}
	r.reportf(n, r.meantHint(), "%s has no value here", text.Truncate(n.Ident[0], fault.MaxName))
	return invalid
}

func (r *resolver) number(n *parse.NumberNode) expr {
	switch {
	case n.IsInt:
		return &literalExpr{value: n.Int64}
	case n.IsFloat && !n.IsUint:
		return &literalExpr{value: n.Float64}
	}
	r.reportf(n, "quote it to make it a string", "%s is not a number that fits into 64 bits", shorten(n))
	return invalid
}

func (r *resolver) fields(v expr, node parse.Node, names []string) expr {
	for _, name := range names {
		v = &fieldExpr{of: v, name: name, offset: int(node.Position())}
	}
	r.noteFields(v)
	return v
}

// name resolves a bare word: a variable, or a function without arguments.
func (r *resolver) name(n *parse.IdentifierNode) expr {
	variable, err := r.names.Lookup(n.Ident)
	if err != nil {
		r.report(fault.At(int(n.Position()), err))
		return invalid
	}
	if variable != nil {
		return &variableExpr{Variable: variable, offset: int(n.Position())}
	}
	if f, found := functions.Lookup(n.Ident); found {
		return r.call(f, n, nil, nil)
	}
	if reason, found := functions.Refused(n.Ident); found {
		r.reportf(n, "", "%s does not exist here: %s", n.Ident, reason)
		return invalid
	}
	shown, hint := text.Truncate(n.Ident, fault.MaxName), ""
	if len(r.faults) < maxSuggestions {
		hint = r.nameHint(n.Ident, shown)
	}
	r.reportf(n, hint, "there is no variable or function %s", shown)
	return invalid
}

// nameHint returns a hint for a name that does not exist.
func (r *resolver) nameHint(name, shown string) string {
	if near := text.Nearest(name, append(r.names.Variables(), functions.Names()...)); near != "" {
		return "did you mean " + near + "?"
	}
	if name == strings.ToUpper(name) && r.names.Properties() != "" {
		return r.propertyHint(shown)
	}
	return "variables are " + r.variableList() + "; strings are written in quotes"
}

// dotHint returns a hint for authors who write .NAME, as in Helm.
func (r *resolver) dotHint(name string) string {
	if variable, err := r.names.Lookup(name); variable != nil || err != nil {
		return "write " + name + ", without anything before it"
	}
	if r.names.Properties() != "" {
		return r.propertyHint(text.Truncate(name, fault.MaxName))
	}
	return r.meantHint()
}

func (r *resolver) propertyHint(key string) string {
	return "for a property of the device write " + r.names.Properties() + "." + key
}

// shorten returns the source of a node for a message.
func shorten(node parse.Node) string {
	const maxShown = 40
	return text.Truncate(fmt.Sprint(node), maxShown)
}
