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
	raw    []byte // the text, while the element is open
}

// Parse returns the root of a document. Text in another encoding than UTF-8 is read as
// ISO 8859-1, whatever the document claims.
func Parse(data []byte) (*Element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(toUTF8(data)))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	b := builder{}
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
	raw           []xml.Name // names of the open elements, as written
	elements      int
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
	switch {
	case len(b.raw) >= maxDepth:
		return fmt.Errorf("not accepted: more than %d levels", maxDepth)
	case len(token.Attr) > maxAttributes:
		return fmt.Errorf("not accepted: more than %d attributes", maxAttributes)
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
	}
	element.Name = element.resolve(token.Name.Space, token.Name.Local)
	b.raw = append(b.raw, token.Name)
	b.current = element
	return nil
}

// resolve returns a name with the namespace that its prefix is bound to. If the prefix is
// not bound, it is the namespace.
func (e *Element) resolve(prefix, local string) xml.Name {
	for scope := e; scope != nil; scope = scope.parent {
		for _, attribute := range scope.Attributes {
			declares := attribute.Name.Space == "xmlns" && attribute.Name.Local == prefix ||
				prefix == "" && attribute.Name.Space == "" && attribute.Name.Local == "xmlns"
			if declares {
				return xml.Name{Space: attribute.Value, Local: local}
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
