package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/ua"
)

// variables are the oven's variables by name. A nil set means that it cannot be written.
var variables = []struct {
	name string
	get  func(reading) any
	set  func(*oven, float64) error
}{
	{"temperature", func(r reading) any { return r.temperature }, nil},
	{"setpoint", func(r reading) any { return r.setpoint }, func(o *oven, value float64) error { return o.set(value, time.Now()) }},
	{"power", func(r reading) any { return r.power }, nil},
	{"pieces", func(r reading) any { return r.pieces }, nil},
}

// newServer returns a server with the oven's variables in the namespace 1.
func newServer(o options, certificate []byte, plant *oven) *server.Server {
	s := server.New(
		server.EndPoint(o.host, o.port),
		server.ServerName(o.name), server.ProductName("Virtual PLC"), server.ManufacturerName("Akri"),
		server.Certificate(certificate), // it has the URI of the application
		server.EnableSecurity("None", ua.MessageSecurityModeNone),
		server.EnableAuthMode(ua.UserTokenTypeAnonymous),
	)
	space := &namespace{NodeNameSpace: server.NewNameSpace("urn:akri:plc"), plant: plant}
	s.AddNamespace(space)
	for _, v := range variables {
		node := server.NewVariableNode(ua.NewStringNodeID(space.ID(), v.name), v.name, func() *ua.DataValue {
			return server.DataValueFromValue(v.get(plant.read(time.Now())))
		})
		access := ua.AccessLevelTypeCurrentRead
		if v.set != nil {
			access |= ua.AccessLevelTypeCurrentWrite
		}
		for _, attribute := range []ua.AttributeID{ua.AttributeIDAccessLevel, ua.AttributeIDUserAccessLevel} {
			_ = node.SetAttribute(attribute, server.DataValueFromValue(byte(access))) // it reports an error although it succeeds
		}
		space.AddNode(node)
		if standard, err := s.Namespace(0); err == nil { // clients find it in the folder Objects
			standard.Objects().AddRef(node, server.RefTypeIDOrganizes, true)
		}
	}
	return s
}

// namespace has variables whose values are checked when they are written.
type namespace struct {
	*server.NodeNameSpace
	plant *oven
}

// SetAttribute implements [server.NameSpace].
func (n *namespace) SetAttribute(node *ua.NodeID, attribute ua.AttributeID, value *ua.DataValue) ua.StatusCode {
	for _, v := range variables {
		if v.name != node.StringID() {
			continue
		}
		if v.set == nil || attribute != ua.AttributeIDValue {
			return ua.StatusBadNotWritable
		}
		number, ok := float64(0), false
		if value != nil && value.Value != nil {
			number, ok = value.Value.Value().(float64)
		}
		if !ok {
			return ua.StatusBadTypeMismatch
		}
		if v.set(n.plant, number) != nil {
			return ua.StatusBadOutOfRange
		}
		return ua.StatusOK
	}
	return ua.StatusBadNodeIDUnknown
}

// newCertificate returns a certificate that nobody checks: it carries the URI of the
// application.
func newCertificate(name, uri string) ([]byte, error) {
	parsed, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("--uri: %q is not a URI: use one such as urn:plant:oven", uri)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{parsed},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	return certificate, nil
}
