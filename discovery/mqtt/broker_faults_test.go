package mqtt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"akri.sh/akri/discovery/handlertest"
)

// rules is a hook that decides who may do what.
type rules struct {
	mochi.HookBase
	// connect decides about a user name and a password.
	connect func(username, password string) bool
	// access decides about a topic.
	access func(topic string, write bool) bool
}

// ID implements mochi.Hook.
func (r *rules) ID() string { return "rules" }

// Provides implements mochi.Hook.
func (r *rules) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}

// OnConnectAuthenticate implements mochi.Hook.
func (r *rules) OnConnectAuthenticate(client *mochi.Client, packet packets.Packet) bool {
	return client.Net.Inline || r.connect == nil || r.connect(string(packet.Connect.Username), string(packet.Connect.Password))
}

// OnACLCheck implements mochi.Hook.
func (r *rules) OnACLCheck(client *mochi.Client, topic string, write bool) bool {
	return client.Net.Inline || r.access == nil || r.access(topic, write)
}

// certificate returns a certificate for 127.0.0.1 and its key, and both in PEM. It is its own
// CA.
func certificate(t testing.TB) (pair tls.Certificate, certificatePEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	certificatePEM, keyPEM = encode("CERTIFICATE", data), encode("EC PRIVATE KEY", secret)
	if pair, err = tls.X509KeyPair([]byte(certificatePEM), []byte(keyPEM)); err != nil {
		t.Fatal(err)
	}
	return pair, certificatePEM, keyPEM
}

func TestTLSAndPassword(t *testing.T) {
	server, caPEM, _ := certificate(t)
	_, clientPEM, clientKey := certificate(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(clientPEM))
	hook := &rules{connect: func(username, password string) bool { return username == "akri" && password == "secret" }}
	b := startBroker(t, "127.0.0.1:0", hook, &tls.Config{
		Certificates: []tls.Certificate{server}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})
	announce(t, b, "pump")
	details := fmt.Sprintf("broker: {url: %q, caProperty: ca, certProperty: cert,"+
		" keyProperty: key}\nconvention: homie\n", "tls://"+b.address)
	properties := map[string]string{"username": "akri", "password": "secret", "ca": caPEM, "cert": clientPEM, "key": clientKey}
	with := func(name, value string) map[string]string {
		changed := maps.Clone(properties)
		changed[name] = value
		return changed
	}
	discover(t, Handler{}, details, properties).UntilIDs("pump")
	for name, tc := range map[string]struct {
		properties map[string]string
		want       string
		invalid    bool
	}{
		"a wrong password":  {with("password", "guess"), "refuses the client: check the discoveryProperties", false},
		"another CA":        {with("ca", clientPEM), "certificate", false},
		"no CA":             {with("ca", ""), "broker.caProperty: there is no discoveryProperty ca", true},
		"a CA that is none": {with("ca", "x"), "has no PEM certificate", true},
		"a key of another":  {with("key", strings.Replace(clientKey, "EC PRIVATE", "OTHER", 2)), "not a certificate and its key", true},
		"only a password":   {with("username", ""), "there is a password but no username", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := discover(t, Handler{}, details, tc.properties)
			err := c.Err()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			for _, secret := range []string{"secret", "guess", "BEGIN"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error has a secret: %v", err)
				}
			}
			if invalid := strings.Contains(fmt.Sprintf("%T", err), "invalid"); invalid != tc.invalid {
				t.Errorf("the error is a %T: invalid must be %v", err, tc.invalid)
			}
		})
	}
}

// TestNothingIsPublished has a user who may only read.
func TestNothingIsPublished(t *testing.T) {
	var published atomic.Bool
	hook := &rules{access: func(_ string, write bool) bool {
		if write {
			published.Store(true)
		}
		return !write
	}}
	b := startBroker(t, "127.0.0.1:0", hook, nil)
	announce(t, b, "pump")
	discover(t, Handler{}, homieDetails(b.url()), nil).UntilIDs("pump")
	if published.Load() {
		t.Error("the handler has published a message")
	}
}

func TestSubscriptionIsNotPermitted(t *testing.T) {
	hook := &rules{access: func(topic string, _ bool) bool { return !strings.HasPrefix(topic, "homie/") }}
	b := startBroker(t, "127.0.0.1:0", hook, nil)
	c := discover(t, Handler{}, homieDetails(b.url()), nil)
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "refuses the subscription to homie/5/+/$state") {
		t.Errorf("got %v, want the refused subscription", err)
	}
	c.Quiet()
}

// hostile is a broker that accepts everything and then sends what it likes.
func hostile(t *testing.T, talk func(net.Conn)) (url string) {
	t.Helper()
	return "tcp://" + handlertest.Listen(t, "127.0.0.1:0", func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 4096)); err == nil {
			_, _ = conn.Write([]byte{0x20, 2, 0, 0}) // the handler may be gone
			talk(conn)
		}
	})
}

// acknowledge answers the first subscription, and waits until the handler is gone.
func acknowledge(packet ...byte) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096)) // the handler may be gone
		_, _ = conn.Write(packet)
		_, _ = io.Copy(io.Discard, conn)
	}
}

func TestHostileBroker(t *testing.T) {
	for name, talk := range map[string]func(net.Conn){
		"does not listen": nil,
		"closes at once":  func(net.Conn) {},
		"garbage": func(conn net.Conn) {
			garbage := make([]byte, 1<<20)
			_, _ = rand.Read(garbage)
			_, _ = conn.Write(garbage)
		},
		"acknowledges what was not requested": acknowledge(0x90, 3, 0x77, 0x77, 0),
		"acknowledges too little":             acknowledge(0x90, 2, 0, 1),
		"acknowledges too much":               acknowledge(0x90, 4, 0, 1, 0, 0),
		"answers more pings than there were":  acknowledge(0xd0, 0, 0xd0, 0),
		"announces a huge packet, and sends it slowly": func(conn net.Conn) {
			_, _ = conn.Write([]byte{0x30, 0xff, 0xff, 0xff, 0x7f})
			for range 50 {
				if _, err := conn.Write(bytes.Repeat([]byte{'x'}, 1<<16)); err != nil {
					return
				}
				time.Sleep(time.Millisecond) // it is the broker that is slow
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := "tcp://127.0.0.1:1"
			if talk != nil {
				url = hostile(t, talk)
			}
			c := discover(t, Handler{outage: 700 * time.Millisecond}, homieDetails(url), nil)
			if err := c.Err(); err == nil || !strings.Contains(err.Error(), "not reachable for") {
				t.Errorf("got %v, want an error about the broker", err)
			}
			c.Quiet()
		})
	}
}
