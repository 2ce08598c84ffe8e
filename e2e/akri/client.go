package akri

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// Client runs kubectl against a cluster, as its administrator.
type Client interface {
	// Kubectl returns the output. The error includes the standard error.
	Kubectl(ctx context.Context, arguments ...string) ([]byte, error)
	// KubectlInput is like Kubectl, but passes input on standard input.
	KubectlInput(ctx context.Context, input []byte, arguments ...string) ([]byte, error)
}

// Administrator is what a cluster's kubeconfig has: the address and the CA of the API
// server, and the administrator's certificate and key. All but the address are PEM.
type Administrator struct {
	Server               string
	CA, Certificate, Key []byte
}

// ReadKubeconfig reads a cluster's kubeconfig, which is JSON.
func ReadKubeconfig(kubeconfig string) (Administrator, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return Administrator{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return Administrator{}, fmt.Errorf("parse the kubeconfig: %w", err)
	}
	if len(config.Clusters) == 0 || len(config.Users) == 0 {
		return Administrator{}, fmt.Errorf("the kubeconfig %s has no cluster or no user", kubeconfig)
	}
	at, as := config.Clusters[0].Cluster, config.Users[0].User
	return Administrator{Server: at.Server, CA: at.CA, Certificate: as.Certificate, Key: as.Key}, nil
}

// Connect returns the address of the API server in a cluster's kubeconfig, which is
// JSON, and a client that is authenticated as the administrator.
func Connect(kubeconfig string) (server string, client *http.Client, err error) {
	administrator, err := ReadKubeconfig(kubeconfig)
	if err != nil {
		return "", nil, err
	}
	pair, err := tls.X509KeyPair(administrator.Certificate, administrator.Key)
	if err != nil {
		return "", nil, fmt.Errorf("parse the administrator's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(administrator.CA) {
		return "", nil, errors.New("the kubeconfig has no CA")
	}
	return administrator.Server, &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 64,
	}}, nil
}
