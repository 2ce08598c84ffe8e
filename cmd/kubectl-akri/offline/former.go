package offline

import (
	"fmt"
	"slices"
	"strings"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/internal/finding"
)

// errorAt returns the finding for a mistake at a node of a file.
func errorAt(at *yamlv3.Node, cause, hint string) error {
	return finding.Finding{Position: finding.Position{Line: at.Line, Column: at.Column}, Mistake: finding.Mistake{Cause: cause, Hint: hint}}
}

// modernize replaces the fields that older versions of Akri had in a spec by those that
// took their place, and returns notes on what is lost.
func (e *editor) modernize() (notes []string, err error) {
	spec := get(e.root, "spec")
	for _, former := range [][2]string{
		{"protocol", "discoveryHandler"}, {"properties", "brokerProperties"}, {"brokerPodSpec", "brokerSpec"}, {"brokerJobSpec", "brokerSpec"},
	} {
		at := indexOf(spec, former[0])
		if at < 0 {
			continue
		}
		key := spec.Content[at]
		if get(spec, former[1]) != nil {
			return nil, errorAt(key, fmt.Sprintf("%s and its successor %s are both set", former[0], former[1]), "keep one")
		}
		switch former[0] {
		case "protocol":
			handler, lost, err := handlerOf(spec.Content[at+1])
			if err != nil {
				return nil, err
			}
			successor := scalar(former[1])
			successor.LineComment = key.LineComment
			text, err := encode(mapping(successor, handler))
			if err != nil {
				return nil, err
			}
			e.replace(text, "spec", former[0])
			key.Value, spec.Content[at+1], notes = former[1], handler, lost
		case "properties":
			from, _, _ := e.span("spec", former[0])
			e.lines[from], e.edited = strings.Replace(e.lines[from], former[0], former[1], 1), true
			key.Value = former[1]
		}
	}
	if e.replace("", "spec", "units") != "" {
		notes = append(notes, "units: removed: it never had an effect")
	}
	return notes, nil
}

// handlerOf returns the discoveryHandler that takes the place of a protocol, which is the
// name of a handler with its details as fields.
func handlerOf(protocol *yamlv3.Node) (handler *yamlv3.Node, notes []string, err error) {
	if protocol = resolved(protocol); protocol.Kind != yamlv3.MappingNode || len(protocol.Content) != 2 {
		return nil, nil, errorAt(protocol, "protocol must have the name of one handler, with its details below it", "such as udev:")
	}
	key, fields := protocol.Content[0], protocol.Content[1]
	if key.Value == "debugEcho" && get(fields, "shared") != nil {
		at := indexOf(fields, "shared")
		fields.Content = slices.Delete(fields.Content, at, at+2)
		notes = append(notes, "protocol.debugEcho.shared: removed: it is an option of the handler debugEcho now, for all Configurations")
	}
	if builtin.Validators[key.Value] == nil {
		notes = append(notes, fmt.Sprintf("protocol.%s: it was part of a modified agent: write a discovery handler that registers "+
			"with the name %[1]s", key.Value))
	}
	details := "{}\n"
	if fields.Tag != "!!null" {
		if details, err = encode(fields); err != nil {
			return nil, nil, err
		}
	}
	name := scalar(key.Value)
	name.LineComment = key.LineComment
	label := scalar("name")
	label.HeadComment = key.HeadComment
	text := scalar(details)
	text.Style = yamlv3.LiteralStyle
	return mapping(label, name, scalar("discoveryDetails"), text), notes, nil
}

// resolved returns a copy of a value in which aliases (*name) are replaced by what they
// refer to: as a text of its own, it has no other anchors.
func resolved(n *yamlv3.Node) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		return resolved(n.Alias)
	}
	c := *n
	c.Anchor, c.Content = "", slices.Clone(n.Content)
	for i, child := range c.Content {
		c.Content[i] = resolved(child)
	}
	return &c
}

func mapping(content ...*yamlv3.Node) *yamlv3.Node {
	return &yamlv3.Node{Kind: yamlv3.MappingNode, Content: content}
}

func scalar(value string) *yamlv3.Node {
	return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: value}
}
