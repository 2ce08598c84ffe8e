// Package clienttls reads the certificates of a Configuration that a handler connects with.
//
// Never: a key in an error.
package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// Config returns the settings for the discoveryProperties that the keys caProperty, certProperty
// and keyProperty at a place in discoveryDetails name. A name may be empty. The error is for
// the author of the Configuration.
func Config(place, ca, cert, key string, properties map[string][]byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, each := range []struct{ field, name string }{{"caProperty", ca}, {"certProperty", cert}, {"keyProperty", key}} {
		if each.name != "" && len(properties[each.name]) == 0 {
			return nil, fmt.Errorf("%s.%s: there is no discoveryProperty %s, or it is empty; add it to discoveryProperties",
				place, each.field, each.name)
		}
	}
	if ca != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(properties[ca]) {
			return nil, fmt.Errorf("%s.caProperty: the discoveryProperty %s has no PEM certificate", place, ca)
		}
	}
	if cert == "" {
		return config, nil
	}
	pair, err := tls.X509KeyPair(properties[cert], properties[key])
	if err != nil { // the error does not quote the key
		return nil, fmt.Errorf("%s.certProperty, %s.keyProperty: not a certificate and its key in PEM: %w", place, place, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}
