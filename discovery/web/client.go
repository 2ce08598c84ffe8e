package web

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
	"net/url"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/web/details"
)

// Bounds on responses.
const (
	maxBodyBytes   = 1 << 20
	maxHeaderBytes = 64 << 10
	maxJSONDepth   = 100
)

// The discoveryProperties with credentials.
const (
	usernameProperty = "username"
	passwordProperty = "password"
	tokenProperty    = "token"
)

// client sends bounded requests.
type client struct {
	http        *http.Client
	credentials func(*http.Request)
	// trusted are the hosts that the Configuration names, which alone get credentials.
	trusted map[string]bool
}

// response is a device's response. Its body is nil if it is not JSON.
type response struct {
	status int
	text   []byte
}

func newClient(wanted *details.Details, properties map[string][]byte, networks Networks) (*client, error) {
	config, err := tlsConfig(wanted.TLS, properties)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: wanted.Timeout(), Control: networks.control}
	c := &client{
		http: &http.Client{
			Timeout: wanted.Timeout(),
			Transport: &http.Transport{
				DialContext:            dialer.DialContext,
				TLSClientConfig:        config,
				TLSHandshakeTimeout:    wanted.Timeout(),
				MaxResponseHeaderBytes: maxHeaderBytes,
				MaxConnsPerHost:        4,
				MaxIdleConns:           maxRequests,
				IdleConnTimeout:        30 * time.Second,
				DisableCompression:     true, // a small response may not become a large one
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		trusted: map[string]bool{},
	}
	for _, address := range wanted.URLs {
		c.trusted[originOf(address)] = true
	}
	if wanted.Index != nil {
		c.trusted[originOf(wanted.Index.URL)] = true
	}
	token, username, password := properties[tokenProperty], properties[usernameProperty], properties[passwordProperty]
	switch {
	case token != nil && username != nil:
		return nil, discovery.Invalid("discoveryProperties: both %s and %s are set: set one of them", tokenProperty, usernameProperty)
	case token != nil:
		c.credentials = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token))) }
	case username != nil:
		c.credentials = func(r *http.Request) { r.SetBasicAuth(string(username), string(password)) }
	}
	return c, nil
}

// tlsConfig returns the settings for https.
func tlsConfig(wanted details.TLS, properties map[string][]byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: wanted.InsecureSkipVerify}
	value := func(name string) ([]byte, error) {
		if data := properties[name]; data != nil {
			return data, nil
		}
		return nil, discovery.Invalid("discoveryDetails: tls: there is no discoveryProperty %q: add it to discoveryProperties", name)
	}
	if wanted.CAProperty != "" {
		data, err := value(wanted.CAProperty)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, discovery.Invalid("discoveryProperty %q: no certificate in PEM form", wanted.CAProperty)
		}
	}
	if wanted.CertProperty == "" {
		return config, nil
	}
	cert, err := value(wanted.CertProperty)
	if err != nil {
		return nil, err
	}
	key, err := value(wanted.KeyProperty)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // the error does not contain the key
		return nil, discovery.Invalid("discoveryProperties %q and %q: not a certificate with its key: %v",
			wanted.CertProperty, wanted.KeyProperty, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// get requests a URL. The error is of few kinds; see [reasonOf].
func (c *client) get(ctx context.Context, address string) (response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return response{}, err
	}
	request.Header.Set("Accept", "application/json, text/plain, */*")
	request.Header.Set("User-Agent", "akri-discovery")
	if c.credentials != nil && c.trusted[originOf(address)] {
		c.credentials(request)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBodyBytes+1))
	switch {
	case err != nil:
		return response{}, err
	case len(text) > maxBodyBytes:
		return response{}, fmt.Errorf("%w: more than %d bytes", errTooLarge, maxBodyBytes)
	}
	return response{status: answer.StatusCode, text: text}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

var (
	errTooLarge = errors.New("the response is too large")
	errNotJSON  = errors.New("the response is not JSON")
)

// json decodes the response.
func (r response) json() (any, error) {
	depth, quoted := 0, false
	for i := 0; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxJSONDepth {
				return nil, fmt.Errorf("%w: nested deeper than %d", errNotJSON, maxJSONDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(r.text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotJSON, err)
	}
	return value, nil
}

// originOf returns scheme and host of a URL.
func originOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}
