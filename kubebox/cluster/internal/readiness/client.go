package readiness

import (
	"bytes"
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

// interval is the time between two requests; dialTimeout bounds a connection attempt.
const (
	interval    = 25 * time.Millisecond
	dialTimeout = time.Second
)

// maxErrorBody bounds the part of a response that becomes part of an error.
const maxErrorBody = 300

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

// ServiceAccount waits until Pods can be created in the namespace default.
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

// Dial connects to an address, possibly from inside a node.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// HTTP waits until a request succeeds.
func HTTP(ctx context.Context, what, url string, dial Dial) error {
	c := &Client{server: url, http: &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}}
	return wait(ctx, what, func() error {
		_, err := c.get(ctx, "")
		return err
	})
}

// Port waits until an address accepts connections.
func Port(ctx context.Context, what, address string, dial Dial) error {
	return wait(ctx, what, func() error {
		attempt, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn, err := dial(attempt, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// NodeAddress waits until the kubelet has registered the node with its address.
func (c *Client) NodeAddress(ctx context.Context, name string) error {
	return wait(ctx, "the addresses of "+name, func() error {
		body, err := c.get(ctx, "/api/v1/nodes/"+name)
		if err != nil {
			return err
		}
		var node struct {
			Status struct {
				Addresses []struct{ Type, Address string }
			}
		}
		if err := json.Unmarshal(body, &node); err != nil {
			return err
		}
		if len(node.Status.Addresses) == 0 {
			return errors.New("the node has no address yet")
		}
		return nil
	})
}

// Create creates an object in the collection at a path, unless it exists. It tries again
// until the API server has what the object depends on, such as its namespace.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return wait(ctx, "an object to be created in "+path, func() error {
		_, err := c.send(ctx, http.MethodPost, path, bytes.NewReader(content))
		if failure, ok := errors.AsType[*statusError](err); ok && failure.code == http.StatusConflict {
			return nil // the response to an earlier attempt was lost
		}
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
	return c.send(ctx, http.MethodGet, path, nil)
}

// send sends a request with an optional JSON body and returns the body of a successful
// response.
func (c *Client) send(ctx context.Context, method, path string, content io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, content)
	if err != nil {
		return nil, err
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		err = &statusError{response.StatusCode, string(body[:min(len(body), maxErrorBody)])}
	}
	return body, err
}

// statusError is a response that reports a failure.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), e.body)
}
