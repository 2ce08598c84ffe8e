package templating

import (
	"fmt"
	"strings"
	"text/template/parse"
)

// resolver settles the names of one text: variables by level, functions and
// their argument counts, $variables to slots. After it nothing is looked up by
// name.
type resolver struct {
	level Level
	binds binding
	mixed bool // inside longer text
	depth int
	// inner is set where dot is an element of range or the value of with.
	inner bool
	// dotIsProperties is set where dot is the properties of a device.
	dotIsProperties bool
	// declared are the $variables alive here; the index is the slot.
	declared  []declaration
	mostSlots int
	faults    []*fault
	// nodes counts parts of the text: what compiling it costs.
	nodes int64
	// keys collects the property keys that the text mentions.
	keys map[string]bool
}

// declaration is a $variable.
type declaration struct {
	name         string
	isProperties bool // its first value is the properties of a device
}

func (r *resolver) report(f *fault) { r.faults = append(r.faults, f) }

func (r *resolver) reportf(node parse.Node, hint, format string, args ...any) {
	r.report(faultf(int(node.Position()), hint, format, args...))
}

func (r *resolver) list(list *parse.ListNode) []stmt {
	if list == nil {
		return nil
	}
	outer := len(r.declared)
	defer func() { r.declared = r.declared[:outer] }()
	if r.depth++; r.depth > MaxDepth {
		r.reportf(list, "use and, or, or $variables", "if, range and with are nested more than %d deep", MaxDepth)
		return nil
	}
	defer func() { r.depth-- }()
	var body []stmt
	for _, node := range list.Nodes {
		if s := r.stmt(node); s != nil {
			body = append(body, s)
		}
	}
	return body
}

func (r *resolver) stmt(node parse.Node) stmt {
	r.nodes++
	switch n := node.(type) {
	case *parse.TextNode:
		return textStmt(n.Text)
	case *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		value := r.pipe(n.Pipe)
		if len(n.Pipe.Decl) > 0 {
			return &setStmt{slots: r.declare(n.Pipe, value), value: value}
		}
		if g, is := value.(*globalExpr); is && g.variable.structured {
			r.report(structureInText(g.variable.name, g.offset))
		}
		return &printStmt{value: value, offset: int(n.Position())}
	case *parse.IfNode:
		return r.branch(&n.BranchNode, func(value expr, slots []int, body, orElse []stmt) stmt {
			return &ifStmt{cond: value, slots: slots, body: body, orElse: orElse}
		})
	case *parse.WithNode:
		return r.branch(&n.BranchNode, func(value expr, slots []int, body, orElse []stmt) stmt {
			return &withStmt{value: value, slots: slots, body: body, orElse: orElse}
		})
	case *parse.RangeNode:
		return r.branch(&n.BranchNode, func(value expr, slots []int, body, orElse []stmt) stmt {
			return &rangeStmt{over: value, slots: slots, body: body, orElse: orElse, offset: int(n.Pipe.Position())}
		})
	case *parse.BreakNode:
		return jumpStmt(signalBreak)
	case *parse.ContinueNode:
		return jumpStmt(signalContinue)
	case *parse.TemplateNode:
		r.reportf(n, "write the expression where it is needed; repeat with range", "template, define and block do not exist here")
	default:
		r.reportf(n, "", "%s cannot be used here", n)
	}
	return nil
}

// branch resolves if, with and range: what they declare lives until their end.
func (r *resolver) branch(n *parse.BranchNode, build func(value expr, slots []int, body, orElse []stmt) stmt) stmt {
	outer, inner, dotIsProperties := len(r.declared), r.inner, r.dotIsProperties
	value := r.pipe(n.Pipe)
	slots := r.declare(n.Pipe, value)
	if n.NodeType != parse.NodeIf {
		r.inner = true
		r.dotIsProperties = n.NodeType == parse.NodeWith && r.isProperties(value)
	}
	body := r.list(n.List)
	r.inner, r.dotIsProperties = inner, dotIsProperties
	orElse := r.list(n.ElseList)
	r.declared = r.declared[:outer]
	return build(value, slots, body, orElse)
}

// declare gives slots to the $variables that a pipeline sets.
func (r *resolver) declare(pipe *parse.PipeNode, value expr) []int {
	slots := make([]int, 0, len(pipe.Decl))
	for _, variable := range pipe.Decl {
		name := variable.Ident[0]
		slot := r.slot(name)
		if !pipe.IsAssign || slot < 0 {
			slot = len(r.declared)
			r.declared = append(r.declared, declaration{name, r.isProperties(value)})
			r.mostSlots = max(r.mostSlots, len(r.declared))
		}
		slots = append(slots, slot)
	}
	return slots
}

func (r *resolver) slot(name string) int {
	for slot := len(r.declared) - 1; slot >= 0; slot-- {
		if r.declared[slot].name == name {
			return slot
		}
	}
	return -1
}

// pipe resolves A | B | C into C's call with B's call with A as last argument.
func (r *resolver) pipe(pipe *parse.PipeNode) expr {
	if r.depth++; r.depth > MaxDepth {
		r.reportf(pipe, "use $variables", "parentheses and blocks are nested more than %d deep", MaxDepth)
		return invalid
	}
	defer func() { r.depth-- }()
	var value expr
	for _, command := range pipe.Cmds {
		value = r.command(command, value)
	}
	return value
}

func (r *resolver) command(command *parse.CommandNode, piped expr) expr {
	r.nodes++
	first, rest := command.Args[0], command.Args[1:]
	if name, is := first.(*parse.IdentifierNode); is {
		if f, known := functionNamed(name.Ident); known {
			return r.call(f, name, rest, piped)
		}
	}
	value := r.operand(first)
	switch {
	case value == invalid: // reported
	case len(rest) > 0:
		r.reportf(rest[0], "put the function first: {{ function "+shorten(first)+" … }}", "%s is a value and takes no arguments", shorten(first))
	case piped != nil:
		r.reportf(first, "write a function after |, such as default or quote", "%s is a value; a value cannot be piped into it", shorten(first))
	}
	return value
}

func (r *resolver) call(f *Function, name *parse.IdentifierNode, args []parse.Node, piped expr) expr {
	call := &callExpr{function: f, offset: int(name.Position())}
	for _, arg := range args {
		call.args = append(call.args, r.operand(arg))
	}
	if piped != nil {
		call.args = append(call.args, piped)
	}
	if n := len(call.args); n < f.least || f.most >= 0 && n > f.most {
		r.reportf(name, "write it as in {{ "+f.Example+" }}", "%s takes %s, not %d", f.Name, f.arity(), n)
	}
	if f.Name == "fail" && !allLiteral(call.args) {
		r.reportf(name, `write {{ fail "the message" }}`, "the message of fail must be written out: the value of a property must not end up in messages")
	}
	r.noteKeys(f.Name, call.args)
	if f.Name == "and" || f.Name == "or" {
		return &shortCircuitExpr{callExpr: *call, stopAt: f.Name == "or"}
	}
	return call
}

func allLiteral(args []expr) bool {
	for _, arg := range args {
		if _, is := arg.(*literalExpr); !is {
			return false
		}
	}
	return true
}

// operand resolves one value: a literal, a name, a chain of fields or something
// in parentheses.
func (r *resolver) operand(node parse.Node) expr {
	r.nodes++
	switch n := node.(type) {
	case *parse.IdentifierNode:
		return r.name(n)
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			r.reportf(n, "set it before, in an expression of its own", "a $variable cannot be set inside parentheses")
		}
		return r.pipe(n)
	case *parse.ChainNode:
		return r.fields(r.operand(n.Node), n, n.Field)
	case *parse.FieldNode:
		if !r.inner {
			r.reportf(n, r.dotHint(n.Ident[0]), "%s has no meaning here: the dot has a value only inside range and with", shorten(n))
			return invalid
		}
		return r.fields(dotExpr{}, n, n.Ident)
	case *parse.DotNode:
		if !r.inner {
			r.reportf(n, "write the variable you mean: "+strings.Join(variableNames(r.level), ", "), "the dot has a value only inside range and with")
			return invalid
		}
		return dotExpr{}
	case *parse.VariableNode:
		slot := r.slot(n.Ident[0])
		if slot < 0 {
			if n.Ident[0] == "$" && len(n.Ident) > 1 {
				r.reportf(n, r.dotHint(n.Ident[1]), "$ has no meaning here: variables are bare words")
			} else {
				r.reportf(n, "write the variable you mean: "+strings.Join(variableNames(r.level), ", "), "%s has no value here", cut(n.Ident[0], maxName))
			}
			return invalid
		}
		return r.fields(slotExpr(slot), n, n.Ident[1:])
	case *parse.StringNode:
		return &literalExpr{value: n.Text}
	case *parse.BoolNode:
		return &literalExpr{value: n.True}
	case *parse.NumberNode:
		return r.number(n)
	case *parse.NilNode:
		r.reportf(n, `for empty text write ""`, "nil is not a value")
	default:
		r.reportf(n, "", "%s cannot be used here", n)
	}
	return invalid
}

func (r *resolver) number(n *parse.NumberNode) expr {
	switch {
	case n.IsInt:
		return &literalExpr{value: n.Int64}
	case n.IsFloat && !n.IsUint:
		return &literalExpr{value: n.Float64}
	}
	r.reportf(n, "quote it to make it text", "%s is not a number that fits into 64 bits", shorten(n))
	return invalid
}

func (r *resolver) fields(value expr, node parse.Node, names []string) expr {
	for _, name := range names {
		value = &fieldExpr{of: value, name: name, offset: int(node.Position())}
	}
	r.noteFields(value)
	return value
}

func (r *resolver) name(n *parse.IdentifierNode) expr {
	if v, known := variableNamed(n.Ident); known {
		if v.refuse != nil {
			if cause, hint := v.refuse(r.level, r.binds); cause != "" {
				r.reportf(n, hint, "%s %s", v.name, cause)
				return invalid
			}
		}
		return &globalExpr{variable: v, offset: int(n.Position())}
	}
	if f, known := functionNamed(n.Ident); known {
		return r.call(f, n, nil, nil)
	}
	if reason, known := refusedFunctions[n.Ident]; known {
		r.reportf(n, "", "%s does not exist here: %s", n.Ident, reason)
		return invalid
	}
	shown := cut(n.Ident, maxName)
	if len(r.faults) >= maxDiagnostics {
		r.reportf(n, "", "there is no variable or function %s", shown)
		return invalid
	}
	hint := didYouMean(n.Ident, usableNames(r.level))
	if hint == "" && r.level == InstanceLevel && n.Ident == strings.ToUpper(n.Ident) {
		hint = "for a property of the device write INSTANCE_PROPERTIES." + shown
	}
	if hint == "" {
		hint = "variables are " + strings.Join(variableNames(r.level), ", ") + "; text is written in quotes"
	}
	r.reportf(n, hint, "there is no variable or function %s", shown)
	return invalid
}

// dotHint helps those who write .NAME, as elsewhere.
func (r *resolver) dotHint(name string) string {
	if _, known := variableNamed(name); known {
		return "write " + name + ", without anything before it"
	}
	if r.level == InstanceLevel {
		return "for a property of the device write INSTANCE_PROPERTIES." + cut(name, maxName)
	}
	return "write the variable you mean: " + strings.Join(variableNames(r.level), ", ")
}

// noteKeys and noteFields collect the keys of properties that are written out.
func (r *resolver) noteKeys(function string, args []expr) {
	if len(args) < 2 {
		return
	}
	of, key := args[0], args[1]
	switch function {
	case "get", "index", "hasKey":
	case "dig":
		of, key = args[len(args)-1], args[0]
	default:
		return
	}
	if literal, is := key.(*literalExpr); is && r.isProperties(of) {
		if name, is := literal.value.(string); is {
			r.note(name)
		}
	}
}

func (r *resolver) noteFields(value expr) {
	for {
		field, is := value.(*fieldExpr)
		if !is {
			return
		}
		if r.isProperties(field.of) {
			r.note(field.name)
		}
		value = field.of
	}
}

func (r *resolver) note(key string) {
	if r.keys != nil {
		r.keys[key] = true
	}
}

// isProperties recognises INSTANCE_PROPERTIES, INSTANCE.properties, .properties
// inside range INSTANCES, and what with and $variables make of them.
func (r *resolver) isProperties(value expr) bool {
	switch v := value.(type) {
	case dotExpr:
		return r.dotIsProperties
	case slotExpr:
		return r.declared[v].isProperties
	case *globalExpr:
		return v.variable.name == "INSTANCE_PROPERTIES"
	case *fieldExpr:
		return v.name == "properties"
	}
	return false
}

// shorten writes a node for a message.
func shorten(node parse.Node) string {
	const longest = 40
	return cut(fmt.Sprint(node), longest)
}

// maxName is how much of a name a message repeats.
const maxName = 63

// cut shortens text for a message.
func cut(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}
