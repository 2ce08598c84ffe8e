package wsdiscovery

import (
	"fmt"

	"github.com/google/uuid"
)

// Type is a type of device to look for.
type Type struct{ namespace, local string }

// The types of ONVIF devices. Old cameras announce only the first, and some recorders and
// door stations only the second. A Probe with both matches only devices that announce
// both, so each needs its own.
var (
	NetworkVideoTransmitter = Type{"http://www.onvif.org/ver10/network/wsdl", "NetworkVideoTransmitter"}
	Device                  = Type{"http://www.onvif.org/ver10/device/wsdl", "Device"}
)

// Probe returns a message that asks all devices of a type to answer. A copy of a message
// is not answered again, so that it can be sent several times.
func Probe(of Type) []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>`+
		`<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"`+
		` xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery" xmlns:t="%s"><s:Header>`+
		`<a:Action s:mustUnderstand="1">http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action>`+
		`<a:MessageID>urn:uuid:%s</a:MessageID>`+
		`<a:ReplyTo><a:Address>http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous</a:Address></a:ReplyTo>`+
		`<a:To s:mustUnderstand="1">urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>`+
		`</s:Header><s:Body><d:Probe><d:Types>t:%s</d:Types></d:Probe></s:Body></s:Envelope>`,
		of.namespace, uuid.NewString(), of.local)
}
