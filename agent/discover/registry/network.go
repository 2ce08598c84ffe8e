package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Network is what an operator permits to endpoints of the type NETWORK, which are
// outside the node's file permissions. The zero value permits none.
type Network struct {
	// Addresses are the addresses at which handlers may listen. If there are none,
	// CAFile decides alone.
	Addresses []netip.Prefix
	// CAFile names the certificates, in PEM, that sign the handlers' certificates. If
	// set, agents connect with TLS only, and a handler's certificate must be valid for
	// the handler's name.
	CAFile string
	// CertFile and KeyFile name the agent's own certificate, in PEM; optional.
	CertFile, KeyFile string
}

// Validate returns an error if the files cannot be used.
func (n Network) Validate() error {
	if n.CAFile == "" && n.CertFile+n.KeyFile != "" || (n.CertFile == "") != (n.KeyFile == "") {
		return errors.New("--network-handlers-cert-file and --network-handlers-key-file belong together, and need --network-handlers-ca-file")
	}
	_, err := n.tls("")
	return err
}

// ParseStatic returns the static handler in NAME=HOST:PORT or NAME=HOST:PORT+shared.
func ParseStatic(text string) (Entry, error) {
	name, address, found := strings.Cut(text, "=")
	address, isShared := strings.CutSuffix(address, "+shared")
	endpoint, err := networkEndpoint(name, address)
	if !found || err != nil || strings.ContainsAny(address, "/, ") {
		return Entry{}, fmt.Errorf(
			"%q: want NAME=HOST:PORT or NAME=HOST:PORT+shared, such as onvif=akri-onvif.akri-system.svc:10000+shared", text)
	}
	return Entry{Endpoint: endpoint, Shared: isShared}, nil
}

// PermitStatic returns an error if the agent must not connect to a static handler. The
// addresses of a name are checked for each connection.
func (n Network) PermitStatic(handler Endpoint) error {
	if len(n.Addresses) == 0 && n.CAFile == "" {
		return fmt.Errorf("static handler %s: handlers on the network are off: "+
			"set --allow-network-handlers=CIDR or --network-handlers-ca-file, too", handler.Name)
	}
	host, _, err := net.SplitHostPort(handler.Address)
	if err != nil {
		return fmt.Errorf("static handler %s: %w", handler.Name, err)
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return nil //nolint:nilerr // a name
	}
	return n.permit(handler)
}

// permit returns an error if the agent must not connect to an endpoint.
func (n Network) permit(e Endpoint) error {
	if !e.Network || n.CAFile != "" && len(n.Addresses) == 0 {
		return nil
	}
	if len(n.Addresses) == 0 {
		return fmt.Errorf("endpoint %q: handlers on the network are off: listen on a Unix socket, "+
			"or run the agents with --allow-network-handlers=CIDR (agent.networkHandlers in the chart) or --network-handlers-ca-file", e.Address)
	}
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil {
		return fmt.Errorf("endpoint %q: %w", e.Address, err)
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("endpoint %q: want an IP address, because --allow-network-handlers lists the permitted ones", e.Address)
	}
	if !slices.ContainsFunc(n.Addresses, func(allowed netip.Prefix) bool { return allowed.Contains(address.Unmap().WithZone("")) }) {
		return fmt.Errorf("endpoint %q: the address is not permitted: add its range to --allow-network-handlers of the agents "+
			"(agent.networkHandlers in the chart)", e.Address)
	}
	return nil
}

// tls returns the configuration of connections to a handler on the network; nil without
// TLS. The files are read each time, so that certificates can be renewed.
func (n Network) tls(handler string) (*tls.Config, error) {
	if n.CAFile == "" {
		return nil, nil
	}
	authorities, err := os.ReadFile(n.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--network-handlers-ca-file: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: handler, NextProtos: []string{"h2"}}
	if !config.RootCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--network-handlers-ca-file: %s has no certificate: want PEM", n.CAFile)
	}
	if n.CertFile != "" {
		own, err := tls.LoadX509KeyPair(n.CertFile, n.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--network-handlers-cert-file, --network-handlers-key-file: %w", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
