package mqtt

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/mqtt/connection"
	"akri.sh/akri/discovery/mqtt/details"
)

// The discoveryProperties with the user name and the password.
const (
	usernameProperty = "username"
	passwordProperty = "password"
)

// randomIDBytes is the length of the random part of a client id, which makes it unique. With
// the default prefix, an id has 21 of the 23 characters that every broker accepts.
const randomIDBytes = 8

// newClientID returns a client id.
func newClientID(prefix string) string {
	var random [randomIDBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	return prefix + "-" + hex.EncodeToString(random[:])
}

// connectionOptions returns how to connect to a Configuration's broker.
func connectionOptions(broker details.Broker, properties map[string][]byte) (connection.Options, error) {
	options := connection.Options{
		Address: broker.Address(), ClientID: newClientID(broker.ClientIDPrefix),
		Username: string(properties[usernameProperty]), Password: string(properties[passwordProperty]),
	}
	if options.Username == "" && options.Password != "" {
		return options, discovery.Invalid("discoveryProperties: there is a password but no username: add the property username")
	}
	if !broker.TLS() {
		return options, nil
	}
	options.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: broker.ServerName}
	if options.TLS.ServerName == "" {
		options.TLS.ServerName = broker.Host()
	}
	if broker.CAProperty != "" {
		pem, err := propertyOf(properties, "caProperty", broker.CAProperty)
		if err != nil {
			return options, err
		}
		options.TLS.RootCAs = x509.NewCertPool()
		if !options.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return options, discovery.Invalid("broker.caProperty: the discoveryProperty %s has no PEM certificate", broker.CAProperty)
		}
	}
	if broker.CertProperty != "" {
		certificate, err := propertyOf(properties, "certProperty", broker.CertProperty)
		if err != nil {
			return options, err
		}
		key, err := propertyOf(properties, "keyProperty", broker.KeyProperty)
		if err != nil {
			return options, err
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil { // the error does not quote the key
			return options, discovery.Invalid("broker.certProperty, broker.keyProperty: not a certificate and its key in PEM: %w", err)
		}
		options.TLS.Certificates = []tls.Certificate{pair}
	}
	return options, nil
}

// propertyOf returns the discoveryProperty that a key of the broker names.
func propertyOf(properties map[string][]byte, key, name string) ([]byte, error) {
	if len(properties[name]) == 0 {
		return nil, discovery.Invalid("broker.%s: there is no discoveryProperty %s, or it is empty: add it to discoveryProperties", key, name)
	}
	return properties[name], nil
}
