package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestIssuedCertificateServesItsHostsAndNamesItsUser(t *testing.T) {
	a, err := NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue(Identity{
		User: "system:node:node1", Groups: []string{"system:nodes"}, Hosts: []string{"node1", "10.99.0.11"},
	})
	if err != nil {
		t.Fatal(err)
	}
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatalf("certificate and key do not match: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Cert)
	for _, host := range []string{"node1", "10.99.0.11"} {
		opts := x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if _, err := both.Leaf.Verify(opts); err != nil {
			t.Errorf("as server %s: %v", host, err)
		}
	}
	opts := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := both.Leaf.Verify(opts); err != nil {
		t.Errorf("as client: %v", err)
	}
	if err := both.Leaf.VerifyHostname("node2"); err == nil {
		t.Error("node1's certificate is valid for node2")
	}
	if s := both.Leaf.Subject; s.CommonName != "system:node:node1" || s.Organization[0] != "system:nodes" {
		t.Errorf("subject is %v", s)
	}
}

func TestCertificateForAnInvalidHost(t *testing.T) {
	a, err := NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Issue(Identity{User: "guard", Hosts: []string{"gu\u00e4rd"}})
	if err == nil || !strings.HasPrefix(err.Error(), `certificate of "guard": x509: `) {
		t.Errorf("got %v", err)
	}
}

func TestCertificatesAreValidForAYear(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	a, err := NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue(Identity{User: "guard"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Pair{a.Pair, pair} {
		both, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		if c := both.Leaf; !c.NotBefore.Equal(now.Add(-time.Hour)) || !c.NotAfter.Equal(now.AddDate(1, 0, 0)) {
			t.Errorf("%s is valid from %v to %v", c.Subject, c.NotBefore, c.NotAfter)
		}
	}
}

func TestKubeconfigCarriesTheCertificates(t *testing.T) {
	b := Kubeconfig("demo", "https://127.0.0.1:1", []byte("ca"), Pair{Cert: []byte("cert"), Key: []byte("key")})
	var c struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			}
		}
		Current string `json:"current-context"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if c.Current != "demo" || c.Clusters[0].Cluster.Server != "https://127.0.0.1:1" || string(c.Clusters[0].Cluster.CA) != "ca" ||
		string(c.Users[0].User.Cert) != "cert" || string(c.Users[0].User.Key) != "key" {
		t.Errorf("got %s", b)
	}
}
