package wsdiscovery

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	discoveryNamespace  = "http://schemas.xmlsoap.org/ws/2005/04/discovery"
	addressingNamespace = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
	soapNamespace       = "http://www.w3.org/2003/05/soap-envelope"
)

// Bounds on a message from the network.
const (
	maxMessage  = 16 << 10
	maxDepth    = 32
	maxElements = 512
	maxID       = 512 // bytes of a message's id, which answers repeat
)

// Type is a qualified type of a device.
type Type struct{ Namespace, Name string }

// The types of an ONVIF camera.
var (
	VideoTransmitter = Type{"http://www.onvif.org/ver10/network/wsdl", "NetworkVideoTransmitter"}
	Device           = Type{"http://www.onvif.org/ver10/device/wsdl", "Device"}
)

// Message is a Probe or a Resolve.
type Message struct {
	ID string
	// Resolve is the address of the device that a Resolve looks for. Empty: a Probe.
	Resolve string
	// Types are those that a Probe looks for. A type whose prefix is not bound has no
	// namespace, so that it matches no device.
	Types   []Type
	Scopes  []string
	MatchBy string // rule for the scopes; empty for the default
}

// errIgnored is the error for messages that are not for devices, such as a Hello.
var errIgnored = errors.New("neither a Probe nor a Resolve")

// Parse reads a message.
func Parse(packet []byte) (Message, error) {
	if len(packet) > maxMessage {
		return Message{}, fmt.Errorf("the message has %d bytes, more than %d", len(packet), maxMessage)
	}
	p := parser{decoder: xml.NewDecoder(bytes.NewReader(packet))}
	if err := p.run(); err != nil {
		return Message{}, err
	}
	if p.operation != "Probe" && p.operation != "Resolve" {
		return Message{}, errIgnored
	}
	m := p.message
	switch {
	case m.ID == "" || len(m.ID) > maxID:
		return Message{}, errors.New("the message has no usable id")
	case p.operation == "Resolve" && m.Resolve == "":
		return Message{}, errors.New("the Resolve names no device")
	case p.operation == "Probe":
		m.Resolve = ""
	}
	return m, nil
}

// element is an open element, with the prefixes that it binds.
type element struct {
	name     xml.Name
	prefixes map[string]string
	text     strings.Builder
}

// parser reads a message token by token, because encoding/xml does not expose the
// prefixes that the values in Types use.
type parser struct {
	decoder   *xml.Decoder
	open      []*element
	elements  int
	operation string
	message   Message
}

func (p *parser) run() error {
	for {
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("parse the message: %w", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if err := p.start(token); err != nil {
				return err
			}
		case xml.CharData:
			if len(p.open) > 0 {
				p.open[len(p.open)-1].text.Write(token)
			}
		case xml.EndElement:
			p.end()
		case xml.Directive:
			return errors.New("the message has a document type declaration, which SOAP forbids")
		}
	}
}

func (p *parser) start(token xml.StartElement) error {
	if p.elements++; p.elements > maxElements || len(p.open) >= maxDepth {
		return fmt.Errorf("the message has more than %d elements, or more than %d levels", maxElements, maxDepth)
	}
	if len(p.open) == 0 && (token.Name != xml.Name{Space: soapNamespace, Local: "Envelope"}) {
		return fmt.Errorf("the message is a %s, not an envelope of SOAP 1.2", token.Name.Local)
	}
	e := &element{name: token.Name, prefixes: map[string]string{}}
	for _, attribute := range token.Attr {
		switch {
		case attribute.Name.Space == "xmlns":
			e.prefixes[attribute.Name.Local] = attribute.Value
		case attribute.Name == xml.Name{Local: "xmlns"}:
			e.prefixes[""] = attribute.Value
		case attribute.Name.Local == "MatchBy" && token.Name.Local == "Scopes":
			p.message.MatchBy = strings.TrimSpace(attribute.Value)
		}
	}
	p.open = append(p.open, e)
	if p.path() == "Envelope/Body/"+token.Name.Local && token.Name.Space == discoveryNamespace && p.operation == "" {
		p.operation = token.Name.Local
	}
	return nil
}

// path returns the names of the open elements.
func (p *parser) path() string {
	var names []string
	for _, e := range p.open {
		names = append(names, e.name.Local)
	}
	return strings.Join(names, "/")
}

// end stores the text of the element that ends.
func (p *parser) end() {
	last := p.open[len(p.open)-1]
	text := strings.TrimSpace(last.text.String())
	switch last.name.Space + " " + p.path() {
	case addressingNamespace + " Envelope/Header/MessageID":
		p.message.ID = text
	case discoveryNamespace + " Envelope/Body/Probe/Types":
		for name := range strings.FieldsSeq(text) {
			p.message.Types = append(p.message.Types, p.resolve(name))
		}
	case discoveryNamespace + " Envelope/Body/Probe/Scopes":
		p.message.Scopes = strings.Fields(text)
	case addressingNamespace + " Envelope/Body/Resolve/EndpointReference/Address":
		p.message.Resolve = text
	}
	p.open = p.open[:len(p.open)-1]
}

// resolve returns the type of a qualified name, with the prefixes of the open elements.
func (p *parser) resolve(name string) Type {
	prefix, local, found := strings.Cut(name, ":")
	if !found {
		prefix, local = "", name
	}
	for _, e := range slices.Backward(p.open) {
		if namespace, ok := e.prefixes[prefix]; ok {
			return Type{namespace, local}
		}
	}
	return Type{Name: local}
}
