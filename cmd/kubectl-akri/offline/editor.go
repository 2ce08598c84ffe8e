package offline

import (
	"regexp"
	"strings"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
)

// editor changes fields of a Configuration in its text, and leaves all other lines as they
// are: comments, quotes, empty lines and line ends.
type editor struct {
	root  *yamlv3.Node
	lines []string // with their ends; those of fields that are removed are empty

	edited bool
	flow   []*yamlv3.Node // maps and lists whose parts have no lines of their own, as in spec: {capacity: 1}
}

// line matches a line with its end, as YAML counts them.
var line = regexp.MustCompile(`[^\r\n\x{85}\x{2028}\x{2029}]*(\r\n|[\r\n\x{85}\x{2028}\x{2029}]|$)`)

// comment matches what is most likely a comment.
var comment = regexp.MustCompile(`(^|\s)#`)

// between matches lines that do not belong to the field above them, but to what follows it.
var between = regexp.MustCompile(`^\s*(#.*|\.\.\.)?\s*$`)

// keeping matches the beginning of a text whose last empty lines count.
var keeping = regexp.MustCompile(`[|>][1-9]?\+`)

// span returns the lines of a field, as indexes.
func (e *editor) span(path ...string) (from, to int, found bool) {
	at, to, column := e.root, len(e.lines), 0
	var flow []*yamlv3.Node
	for _, key := range path {
		i := indexOf(at, key)
		if i < 0 {
			return 0, 0, false
		}
		flow = append(flow, at)
		from, column = at.Content[i].Line-1, at.Content[i].Column
		if i+2 < len(at.Content) {
			to = at.Content[i+2].Line - 1
		}
		at = at.Content[i+1]
	}
	for to-1 > from && between.MatchString(e.lines[to-1]) && indentation(e.lines[to-1]) < column {
		to--
	}
	if keeping.MatchString(strings.Join(e.lines, "")) { // then empty lines may belong to a text
		for to < len(e.lines) && strings.TrimSpace(e.lines[to]) == "" {
			to++
		}
	}
	e.note(flow...)
	return from, to, true
}

// note notes maps and lists in which something is to be changed.
func (e *editor) note(changed ...*yamlv3.Node) {
	for _, n := range changed {
		if n.Style&yamlv3.FlowStyle != 0 {
			e.flow = append(e.flow, n)
		}
	}
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// replace replaces a field, and returns what it was.
func (e *editor) replace(text string, path ...string) (removed string) {
	if from, to, found := e.span(path...); found && e.lines[from] != "" {
		indent := indentation(e.lines[from])
		removed = strings.Join(e.lines[from:to], "")
		clear(e.lines[from:to])
		e.insert(text, from, indent)
	}
	return removed
}

// insert adds a text, whose lines are indented, to a line.
func (e *editor) insert(text string, at, indent int) {
	e.edited = true
	if before := e.lines[at]; text != "" && before != "" && !strings.HasSuffix(before, "\n") {
		text = "\n" + text
	}
	if strings.HasSuffix(e.lines[0], "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	for each := range strings.SplitAfterSeq(text, "\n") {
		if strings.TrimSpace(each) != "" {
			each = strings.Repeat(" ", indent) + each
		}
		e.lines[at] += each
	}
}

// dropServerFields removes what kubectl get prints and must not be applied: fields that the
// API server sets, and finalizers. Those of the original Akri's agents are bare names of
// nodes, and nobody would take them off a Configuration that is created again.
func (e *editor) dropServerFields() {
	e.replace("", "status")
	for _, field := range []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation", "managedFields",
		"resourceVersion", "selfLink", "uid",
	} {
		e.replace("", "metadata", field)
	}
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	annotations := get(get(e.root, "metadata"), "annotations")
	if annotations != nil && len(annotations.Content) == 2 && annotations.Content[0].Value == lastApplied {
		e.replace("", "metadata", "annotations")
	} else {
		e.replace("", "metadata", "annotations", lastApplied)
	}
}

// add appends templates to a list. One that does not exist is inserted at a line.
func (e *editor) add(line int, level templating.Level, resources []convert.Resource) error {
	if len(resources) == 0 {
		return nil
	}
	spec := get(e.root, "spec")
	list := get(spec, level.String())
	e.note(spec)
	var templates yamlv3.Node
	if err := templates.Encode(convert.Templates(resources)); err != nil {
		return err
	}
	if list != nil && list.Kind != yamlv3.SequenceNode && list.Tag != "!!null" {
		return errorAt(list, level.String()+" must be a list", "write the templates below it, each with a dash")
	}
	if list == nil || len(list.Content) == 0 {
		e.replace("", "spec", level.String())
		text, err := encode(mapping(scalar(level.String()), &templates))
		e.insert(text, line, spec.Content[0].Column-1)
		return err
	}
	text, err := encode(&templates)
	_, to, _ := e.span("spec", level.String())
	e.note(list)
	e.insert(text, to-1, indentation(e.lines[list.Content[0].Line-1]))
	return err
}

// withoutAnchors is the remedy if what is to be changed is also used elsewhere.
const withoutAnchors = "replace anchors (&name), aliases (*name) and merge keys (<<) with their content before converting"
