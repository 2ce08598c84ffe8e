package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// tlsFiles are the files of a handler on the network that uses TLS.
type tlsFiles struct{ cert, key, clientCA string }

func (f *tlsFiles) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert-file", "",
		"PEM file of a certificate whose DNS name is the handler's name, such as onvif; only with --pod-ip")
	flags.StringVar(&f.key, "tls-key-file", "", "PEM file of the certificate's key")
	flags.StringVar(&f.clientCA, "tls-client-ca-file", "",
		"PEM file of the CA of the agents' certificates; connections without one are refused")
}

// config returns the configuration of the handler's connections; nil without TLS. The
// files are read for each connection, so that certificates can be renewed.
func (f *tlsFiles) config(onNetwork bool) (*tls.Config, error) {
	switch {
	case *f == tlsFiles{}:
		return nil, nil
	case f.cert == "" || f.key == "":
		return nil, errors.New("--tls-cert-file and --tls-key-file belong together, and --tls-client-ca-file needs them")
	case !onNetwork:
		return nil, errors.New("--tls-cert-file: a handler on a Unix socket does not use TLS: set --pod-ip, too")
	}
	if _, err := f.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.read() },
	}, nil
}

func (f *tlsFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if f.clientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(f.clientCA)
	if err != nil {
		return nil, fmt.Errorf("--tls-client-ca-file: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--tls-client-ca-file: %s has no certificate: want PEM", f.clientCA)
	}
	return config, nil
}
