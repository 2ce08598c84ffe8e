package wsdiscovery

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// composer writes the messages of a device, with increasing numbers.
type composer struct {
	target Target
	// instance distinguishes the runs of a device: it is larger after a restart.
	instance int64
	number   int
	newID    func() string // of a message
}

// announcement returns a Hello or a Bye.
func (c *composer) announcement(kind string) []byte {
	return c.compose(kind, "urn:schemas-xmlsoap-org:ws:2005:04:discovery", "", fmt.Sprintf("<d:%s>%s</d:%s>", kind, c.description(), kind))
}

// reply returns the answer to a message that matches.
func (c *composer) reply(m Message) []byte {
	const anonymous = addressingNamespace + "/role/anonymous"
	kind := "Probe"
	if m.Resolve != "" {
		kind = "Resolve"
	}
	body := fmt.Sprintf("<d:%sMatches><d:%sMatch>%s</d:%sMatch></d:%sMatches>", kind, kind, c.description(), kind, kind)
	return c.compose(kind+"Matches", anonymous, m.ID, body)
}

// description returns what all messages say about the device.
func (c *composer) description() string {
	t := c.target
	var types strings.Builder
	for i, each := range t.Types {
		if i > 0 {
			types.WriteByte(' ')
		}
		fmt.Fprintf(&types, "t%d:%s", i, each.Name)
	}
	return fmt.Sprintf("<a:EndpointReference><a:Address>%s</a:Address></a:EndpointReference><d:Types>%s</d:Types>"+
		"<d:Scopes>%s</d:Scopes><d:XAddrs>%s</d:XAddrs><d:MetadataVersion>1</d:MetadataVersion>",
		escape(t.address()), escape(types.String()), escape(strings.Join(t.Scopes, " ")), escape(t.XAddr))
}

// compose returns an envelope.
func (c *composer) compose(action, to, relatesTo, body string) []byte {
	c.number++
	var text bytes.Buffer
	fmt.Fprintf(&text, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<s:Envelope xmlns:s="%s" xmlns:a="%s" xmlns:d="%s"`,
		soapNamespace, addressingNamespace, discoveryNamespace)
	for i, each := range c.target.Types {
		fmt.Fprintf(&text, ` xmlns:t%d="%s"`, i, escape(each.Namespace))
	}
	fmt.Fprintf(&text, "><s:Header><a:Action>%s/%s</a:Action><a:MessageID>%s</a:MessageID><a:To>%s</a:To>",
		discoveryNamespace, action, c.newID(), to)
	if relatesTo != "" {
		fmt.Fprintf(&text, "<a:RelatesTo>%s</a:RelatesTo>", escape(relatesTo))
	}
	fmt.Fprintf(&text, `<d:AppSequence InstanceId="%d" MessageNumber="%d"/></s:Header><s:Body>%s</s:Body></s:Envelope>`,
		c.instance, c.number, body)
	return text.Bytes()
}

// escape returns a text for use in XML.
func escape(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a strings.Builder never fails
	return escaped.String()
}
