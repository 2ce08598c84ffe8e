package mqtt

import (
	"crypto/rand"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/internal/clienttls"
	"akri.sh/akri/discovery/mqtt/connection"
	"akri.sh/akri/discovery/mqtt/details"
)

// The discoveryProperties with the user name and the password.
const (
	usernameProperty = "username"
	passwordProperty = "password"
)

// randomIDLength is the length of the random part of a client id, which makes it unique. With
// the default prefix, an id has 21 of the 23 characters that every broker accepts.
const randomIDLength = 16

// connectionOptions returns how to connect to a Configuration's broker.
func connectionOptions(broker details.Broker, properties map[string][]byte) (connection.Options, error) {
	options := connection.Options{
		Address: broker.Address(), ClientID: broker.ClientIDPrefix + "-" + rand.Text()[:randomIDLength],
		Username: string(properties[usernameProperty]), Password: string(properties[passwordProperty]),
	}
	if options.Username == "" && options.Password != "" {
		return options, discovery.Invalid("discoveryProperties: there is a password but no username: add the property username")
	}
	if !broker.TLS() {
		return options, nil
	}
	var err error
	options.TLS, err = clienttls.Config("broker", broker.CAProperty, broker.CertProperty, broker.KeyProperty, properties)
	if err != nil {
		return options, discovery.Invalid("%w", err)
	}
	options.TLS.ServerName = broker.ServerName // by default, that of the address
	return options, nil
}
