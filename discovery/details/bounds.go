package details

import (
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/internal/text"
)

const (
	// MaxBytes bounds discoveryDetails that a built-in handler parses: parsing takes
	// up to 200 times the size of the text.
	MaxBytes = 64 << 10
	// maxExpandedBytes bounds discoveryDetails after aliases (*name) are replaced by
	// what they refer to: a text of 64 KiB can expand to gigabytes.
	maxExpandedBytes = 128 << 10
	// maxDepth bounds how deep lists and maps are nested.
	maxDepth = 32
	// maxQuotedError is how many bytes of a message of the YAML parser a Fault quotes.
	maxQuotedError = 200

	withoutAnchors = "write the values without anchors"
)

// parse returns the tree of a text that is within the bounds; nil if it is empty.
func parse(discoveryDetails string) (*yamlv3.Node, *Fault) {
	if len(discoveryDetails) > MaxBytes {
		return nil, Faultf("", "%d bytes, the limit is %d", len(discoveryDetails), MaxBytes).
			Hintf("use several Configurations")
	}
	decoder := yamlv3.NewDecoder(strings.NewReader(discoveryDetails))
	var root, second yamlv3.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, invalidYAML(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, Faultf("", "more than one YAML document").Hintf("remove the line ---")
	} else if !errors.Is(err, io.EOF) {
		return nil, invalidYAML(err)
	}
	w := walk{sizes: map[*yamlv3.Node]int{}}
	if _, fault := w.size(&root, 0); fault != nil {
		return nil, fault
	}
	return &root, nil
}

// invalidYAML returns the Fault for an error of the YAML parser, which starts with the
// line.
func invalidYAML(err error) *Fault {
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	message = strings.TrimPrefix(message, "unmarshal errors:")
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	line := 0
	if count, _ := fmt.Sscanf(message, "line %d:", &line); count == 1 {
		_, message, _ = strings.Cut(message, ": ")
	}
	return faultAt(line, "not valid YAML: %s", text.Truncate(text.OneLine(message), maxQuotedError))
}

// walk computes the sizes of nodes whose aliases are replaced. The size of each anchor
// is computed once, so a walk takes as long as reading the text.
type walk struct{ sizes map[*yamlv3.Node]int }

func (w walk) size(node *yamlv3.Node, depth int) (int, *Fault) {
	if depth > maxDepth {
		return 0, tooDeep(node)
	}
	if node.Kind == yamlv3.AliasNode {
		// Anchors come before their aliases, but one that contains its own alias is
		// not yet known.
		size, known := w.sizes[node.Alias]
		if !known {
			return 0, faultAt(node.Line, "the anchor %s contains itself", node.Value).Hintf(withoutAnchors)
		}
		return size, nil
	}
	total := len(node.Value) + 1
	for _, child := range node.Content {
		size, fault := w.size(child, depth+1)
		if fault != nil {
			return 0, fault
		}
		if total += size; total > maxExpandedBytes {
			return 0, faultAt(child.Line, "the aliases expand to more than %d bytes", maxExpandedBytes).Hintf(withoutAnchors)
		}
	}
	if node.Anchor != "" {
		w.sizes[node] = total
	}
	return total, nil
}

func tooDeep(node *yamlv3.Node) *Fault {
	return faultAt(node.Line, "lists and maps are nested deeper than %d", maxDepth)
}
