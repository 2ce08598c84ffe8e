package xmltree

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth bounds how deeply elements may be nested. Answers have about ten levels.
	maxDepth = 64
	// maxElements bounds the elements of a document. The profiles of a large recorder
	// have some thousands.
	maxElements = 20000
	// maxAttributes bounds the attributes of an element. Some cameras declare forty
	// namespaces in the root.
	maxAttributes = 128
	// maxTotalAttributes bounds the attributes of a document, which need more memory than
	// its text.
	maxTotalAttributes = 20000
	// maxNamespaces bounds the declarations of namespaces that an element inherits and has
	// itself: each name is looked up in them.
	maxNamespaces = 256
	// maxNames bounds the names in one element's text.
	maxNames = 64
)

// Element is an element of a document. The methods of a nil Element find nothing.
type Element struct {
	// Name is the name with its namespace; or with its prefix, if that is not bound.
	Name xml.Name
	// Attributes include the declarations of namespaces.
	Attributes []xml.Attr
	// Text is the text between the tags, without surrounding spaces and without the
	// text of children.
	Text     string
	Children []*Element

	parent *Element
	scope  *scope
	raw    []byte // the text, while the element is open
}

// scope has the namespaces that elements declare: those of one that declares some, and
// those of its parents.
type scope struct {
	parent   *scope
	declared []xml.Attr
}

// Parse returns the root of a document. Text in another encoding than UTF-8 is read as
// ISO 8859-1, whatever the document claims.
func Parse(data []byte) (*Element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(toUTF8(data)))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	b := builder{bound: map[string][]string{}}
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("not valid XML: %w", err)
		}
		if err := b.add(token); err != nil {
			return nil, err
		}
	}
	if b.root == nil || b.current != nil {
		return nil, errors.New("not valid XML: no complete element")
	}
	return b.root, nil
}

// builder builds a tree from tokens. It resolves namespaces itself, because the values
// of some elements contain prefixes too.
type builder struct {
	root, current *Element
	raw           []xml.Name          // names of the open elements, as written
	bound         map[string][]string // namespaces of prefixes, the innermost last
	elements      int
	attributes    int
	namespaces    int // that are bound
}

func (b *builder) add(token xml.Token) error {
	switch token := token.(type) {
	case xml.StartElement:
		return b.open(token)
	case xml.EndElement:
		if len(b.raw) == 0 || b.raw[len(b.raw)-1] != token.Name {
			return fmt.Errorf("not valid XML: unexpected end tag %s", token.Name.Local)
		}
		b.raw = b.raw[:len(b.raw)-1]
		b.unbind(b.current)
		b.current.Text, b.current.raw = string(bytes.TrimSpace(b.current.raw)), nil
		b.current = b.current.parent
	case xml.CharData:
		if b.current != nil {
			b.current.raw = append(b.current.raw, token...)
		}
	case xml.Directive:
		return errors.New("not accepted: a document type declaration")
	}
	return nil
}

func (b *builder) open(token xml.StartElement) error {
	b.elements++
	b.attributes += len(token.Attr)
	switch {
	case len(b.raw) >= maxDepth:
		return fmt.Errorf("not accepted: more than %d levels", maxDepth)
	case len(token.Attr) > maxAttributes:
		return fmt.Errorf("not accepted: more than %d attributes", maxAttributes)
	case b.attributes > maxTotalAttributes:
		return fmt.Errorf("not accepted: more than %d attributes in total", maxTotalAttributes)
	case b.elements > maxElements:
		return fmt.Errorf("not accepted: more than %d elements", maxElements)
	case b.root != nil && b.current == nil:
		return errors.New("not valid XML: several roots")
	}
	element := &Element{Attributes: append([]xml.Attr(nil), token.Attr...), parent: b.current}
	if b.current == nil {
		b.root = element
	} else {
		b.current.Children = append(b.current.Children, element)
		element.scope = b.current.scope
	}
	if declared := declarations(token.Attr); declared != nil {
		element.scope = &scope{parent: element.scope, declared: declared}
		for _, d := range declared {
			b.bound[d.Name.Local] = append(b.bound[d.Name.Local], d.Value)
		}
		if b.namespaces += len(declared); b.namespaces > maxNamespaces {
			return fmt.Errorf("not accepted: more than %d namespaces", maxNamespaces)
		}
	}
	element.Name = token.Name
	if bound := b.bound[token.Name.Space]; len(bound) > 0 {
		element.Name.Space = bound[len(bound)-1]
	}
	b.raw = append(b.raw, token.Name)
	b.current = element
	return nil
}

// unbind removes the declarations of an element that ends.
func (b *builder) unbind(e *Element) {
	if e.scope == nil || e.parent != nil && e.parent.scope == e.scope {
		return
	}
	for _, d := range e.scope.declared {
		prefix := d.Name.Local
		b.bound[prefix] = b.bound[prefix][:len(b.bound[prefix])-1]
	}
	b.namespaces -= len(e.scope.declared)
}

// declarations returns the namespaces that attributes declare, by prefixes as local names;
// "" is the default.
func declarations(attributes []xml.Attr) []xml.Attr {
	var declared []xml.Attr
	for _, attribute := range attributes {
		switch name := attribute.Name; {
		case name.Space == "xmlns":
			declared = append(declared, xml.Attr{Name: xml.Name{Local: name.Local}, Value: attribute.Value})
		case name.Space == "" && name.Local == "xmlns":
			declared = append(declared, xml.Attr{Value: attribute.Value})
		}
	}
	return declared
}

// resolve returns a name with the namespace that its prefix is bound to. If the prefix is
// not bound, it is the namespace.
func (e *Element) resolve(prefix, local string) xml.Name {
	for s := e.scope; s != nil; s = s.parent {
		for _, declaration := range s.declared {
			if declaration.Name.Local == prefix {
				return xml.Name{Space: declaration.Value, Local: local}
			}
		}
	}
	return xml.Name{Space: prefix, Local: local}
}

// Names returns the names in the element's text, which are separated by spaces and may
// have prefixes.
func (e *Element) Names() []xml.Name {
	if e == nil {
		return nil
	}
	var names []xml.Name
	for field := range strings.FieldsSeq(e.Text) {
		prefix, local, found := strings.Cut(field, ":")
		if !found {
			prefix, local = "", field
		}
		if names = append(names, e.resolve(prefix, local)); len(names) == maxNames {
			break
		}
	}
	return names
}

// All returns the descendants at a path of local names.
func (e *Element) All(path ...string) []*Element {
	if e == nil {
		return nil
	}
	found := []*Element{e}
	for _, local := range path {
		var next []*Element
		for _, element := range found {
			for _, child := range element.Children {
				if child.Name.Local == local {
					next = append(next, child)
				}
			}
		}
		found = next
	}
	return found
}

// Find returns the first descendant at a path of local names, or nil.
func (e *Element) Find(path ...string) *Element {
	if found := e.All(path...); len(found) > 0 {
		return found[0]
	}
	return nil
}

// Value returns the text of the first descendant at a path of local names, or "".
func (e *Element) Value(path ...string) string {
	if found := e.Find(path...); found != nil {
		return found.Text
	}
	return ""
}

// Attribute returns the value of an attribute, or "".
func (e *Element) Attribute(local string) string {
	if e == nil {
		return ""
	}
	for _, attribute := range e.Attributes {
		if attribute.Name.Local == local && attribute.Name.Space != "xmlns" {
			return attribute.Value
		}
	}
	return ""
}

// toUTF8 returns text that is not UTF-8 converted from ISO 8859-1.
func toUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	converted := make([]byte, 0, len(data)+len(data)/8)
	for _, b := range data {
		converted = utf8.AppendRune(converted, rune(b))
	}
	return converted
}
