// Package readiness waits until the API server, nodes and kubelets are ready. It reads
// a few fields of the Kubernetes API with net/http, without a client library.
package readiness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// interval is the time between two requests.
const interval = 25 * time.Millisecond

// Client sends requests to one API server, with a client certificate.
type Client struct {
	server string
	http   *http.Client
}

// NewClient returns a client that uses certificates from files.
func NewClient(server, ca, cert, key string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &Client{server: server, http: &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}},
	}}, nil
}

// APIServer waits until the API server is ready.
func (c *Client) APIServer(ctx context.Context) error {
	return wait(ctx, "the API server to be ready", func() error {
		_, err := c.get(ctx, "/readyz")
		return err
	})
}

// ServiceAccount waits until pods can be created in the namespace default.
func (c *Client) ServiceAccount(ctx context.Context) error {
	return wait(ctx, "the default ServiceAccount", func() error {
		_, err := c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
		return err
	})
}

// Node waits until the node is Ready.
func (c *Client) Node(ctx context.Context, name string) error {
	return wait(ctx, name+" to be Ready", func() error {
		body, err := c.get(ctx, "/api/v1/nodes/"+name)
		if err != nil {
			return err
		}
		return nodeReady(body)
	})
}

// Kubelet waits until a node's kubelet reports that it is healthy. dial connects from
// inside the node.
func Kubelet(ctx context.Context, name string, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	c := &Client{server: "http://127.0.0.1:10248", http: &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}}
	return wait(ctx, "the kubelet of "+name, func() error {
		_, err := c.get(ctx, "/healthz")
		return err
	})
}

// nodeReady returns an error unless the Node in body is Ready.
func nodeReady(body []byte) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" {
			if c.Status == "True" {
				return nil
			}
			return errors.New(c.Message)
		}
	}
	return errors.New("the node has no Ready condition yet")
}

// wait calls check until it succeeds.
func wait(ctx context.Context, what string, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (last error: %w)", what, context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}

// get returns the body of a successful response.
func (c *Client) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return body, err
}
