package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTLSFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		files     tlsFiles
		onNetwork bool
		want      string // "": no error
	}{
		"none":             {tlsFiles{}, false, ""},
		"no key":           {tlsFiles{cert: "a"}, true, "belong together"},
		"only a CA":        {tlsFiles{clientCA: "a"}, true, "belong together"},
		"on a Unix socket": {tlsFiles{cert: "a", key: "b"}, false, "set --pod-ip"},
		"missing files":    {tlsFiles{cert: "/nowhere", key: "/nowhere"}, true, "--tls-cert-file, --tls-key-file: open /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := tc.files.config(tc.onNetwork)
			if tc.want == "" && (err != nil || config != nil) {
				t.Errorf("got %v, %v", config, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// selfSigned returns a certificate and its key, in PEM.
func selfSigned(t *testing.T, name string, usage x509.ExtKeyUsage) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{usage},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
}

// TestTLS checks that a handler shows its certificate, requires one of clients, and
// reads renewed files for the next connection.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	files := tlsFiles{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), clientCA: filepath.Join(dir, "ca.crt")}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// issue writes another certificate of the handler, and returns it.
	issue := func() []byte {
		t.Helper()
		certificate, key := selfSigned(t, "debugEcho", x509.ExtKeyUsageServerAuth)
		write(files.cert, certificate)
		write(files.key, key)
		return certificate
	}
	agentCert, agentKey := selfSigned(t, "agent", x509.ExtKeyUsageClientAuth)
	own, err := tls.X509KeyPair(agentCert, agentKey)
	if err != nil {
		t.Fatal(err)
	}
	write(files.clientCA, agentCert)
	trusted := issue()
	config, err := files.config(true)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(authority []byte, certificates ...tls.Certificate) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		ours, theirs := net.Pipe()
		server := tls.Server(theirs, config)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Handshake() // the client reports it
			_, _ = server.Write([]byte("x"))
			theirs.Close()
		}()
		client := tls.Client(ours, &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "debugEcho", NextProtos: []string{"h2"}, Certificates: certificates,
		})
		_, err := client.Read(make([]byte, 1)) // TLS 1.3 refuses clients after the handshake
		ours.Close()
		<-ended
		if err == nil && client.ConnectionState().NegotiatedProtocol != "h2" {
			err = errors.New("gRPC needs the protocol h2")
		}
		return err
	}
	if err := connect(trusted, own); err != nil {
		t.Errorf("an agent: %v", err)
	}
	if err := connect(trusted); err == nil {
		t.Error("a client without a certificate is accepted")
	}
	if renewed := issue(); connect(renewed, own) != nil || connect(trusted, own) == nil {
		t.Error("a renewed certificate is not used")
	}
}
