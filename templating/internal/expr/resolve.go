package expr

import (
	"slices"
	"strings"
	"text/template/parse"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
)

// resolver replaces the names in one text: variables by what Names returns,
// functions by entries of their table, $variables by slots.
type resolver struct {
	names Names
	depth int
	// inner is set where dot is an element of range or the value of with.
	inner bool
	// dotIsProperties is set where dot is the properties of a device.
	dotIsProperties bool
	// declared are the $variables alive here; the index is the slot.
	declared []declaration
	maxSlots int
	faults   []*fault.Fault
	// nodes counts the parts of the text.
	nodes int64
	// keys are the property keys that the text mentions.
	keys []string
}

// declaration is a $variable.
type declaration struct {
	name         string
	isProperties bool // its first value is the properties of a device
}

func (r *resolver) report(f *fault.Fault) { r.faults = append(r.faults, f) }

func (r *resolver) reportf(node parse.Node, hint, format string, args ...any) {
	r.report(fault.Newf(int(node.Position()), hint, format, args...))
}

func (r *resolver) list(list *parse.ListNode) []stmt {
	if list == nil {
		return nil
	}
	outer := len(r.declared)
	defer func() { r.declared = r.declared[:outer] }()
	if r.depth++; r.depth > budget.MaxDepth {
		r.reportf(list, "use and, or, or $variables", "if, range and with are nested more than %d deep", budget.MaxDepth)
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

// stmt returns the statement of a node of text/template's syntax tree, with its variables
// resolved to slots; nil for comments and for nodes that are not allowed, which are
// reported.
func (r *resolver) stmt(node parse.Node) stmt {
	r.nodes++
	switch n := node.(type) {
	case *parse.TextNode:
		return textStmt(n.Text)
	case *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		v := r.pipe(n.Pipe)
		if len(n.Pipe.Decl) > 0 {
			return &setStmt{slots: r.declare(n.Pipe, v), value: v}
		}
		if named, ok := v.(*variableExpr); ok && named.NotInText != "" {
			r.report(notInText(named.Variable, named.offset))
		}
		return &printStmt{value: v, offset: int(n.Position())}
	case *parse.IfNode:
		return &ifStmt{branch: r.branch(&n.BranchNode)}
	case *parse.WithNode:
		return &ifStmt{branch: r.branch(&n.BranchNode), with: true}
	case *parse.RangeNode:
		return &rangeStmt{branch: r.branch(&n.BranchNode), offset: int(n.Pipe.Position())}
	case *parse.BreakNode:
		return jumpStmt(signalBreak)
	case *parse.ContinueNode:
		return jumpStmt(signalContinue)
	case *parse.TemplateNode:
		r.reportf(n, insteadOfDefine, "template, define and block do not exist here")
	default:
		r.reportf(n, "", "%s cannot be used here", n)
	}
	return nil
}

// branch resolves if, with and range. Their declarations end with them.
func (r *resolver) branch(n *parse.BranchNode) branch {
	outer, inner, dotIsProperties := len(r.declared), r.inner, r.dotIsProperties
	v := r.pipe(n.Pipe)
	slots := r.declare(n.Pipe, v)
	if n.NodeType != parse.NodeIf {
		r.inner = true
		r.dotIsProperties = n.NodeType == parse.NodeWith && r.isProperties(v)
	}
	body := r.list(n.List)
	r.inner, r.dotIsProperties = inner, dotIsProperties
	orElse := r.list(n.ElseList)
	r.declared = r.declared[:outer]
	return branch{value: v, slots: slots, body: body, orElse: orElse}
}

// declare assigns slots to the $variables that a pipeline sets.
func (r *resolver) declare(pipe *parse.PipeNode, v expr) []int {
	slots := make([]int, 0, len(pipe.Decl))
	for _, variable := range pipe.Decl {
		name := variable.Ident[0]
		slot := r.slot(name)
		if !pipe.IsAssign || slot < 0 {
			slot = len(r.declared)
			r.declared = append(r.declared, declaration{name, r.isProperties(v)})
			r.maxSlots = max(r.maxSlots, len(r.declared))
		}
		slots = append(slots, slot)
	}
	return slots
}

func (r *resolver) slot(name string) int {
	for slot, v := range slices.Backward(r.declared) {
		if v.name == name {
			return slot
		}
	}
	return -1
}

// noteKey records a property key that is written out in a call.
func (r *resolver) noteKey(call *callExpr) {
	if of, key, ok := call.literalKey(); ok && r.isProperties(of) {
		r.note(key)
	}
}

// noteFields records the property keys in X.a.b.
func (r *resolver) noteFields(v expr) {
	for {
		field, ok := v.(*fieldExpr)
		if !ok {
			return
		}
		if r.isProperties(field.of) {
			r.note(field.name)
		}
		v = field.of
	}
}

func (r *resolver) note(key string) {
	if !slices.Contains(r.keys, key) {
		r.keys = append(r.keys, key)
	}
}

// isProperties reports whether an expression is the properties of a device:
// INSTANCE_PROPERTIES, INSTANCE.properties, .properties inside range INSTANCES,
// and these by way of with or a $variable.
func (r *resolver) isProperties(v expr) bool {
	switch v := v.(type) {
	case dotExpr:
		return r.dotIsProperties
	case slotExpr:
		return r.declared[v].isProperties
	case *variableExpr:
		return v.Properties
	case *fieldExpr:
		return v.name == "properties"
	}
	return false
}

// variableList lists the variables in a hint.
func (r *resolver) variableList() string { return strings.Join(r.names.Variables(), ", ") }

func (r *resolver) meantHint() string { return "write the variable you mean: " + r.variableList() }
