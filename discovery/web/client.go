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
	"sync"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/internal/pool"
	"akri.sh/akri/discovery/web/details"
)

// Bounds on responses.
const (
	maxBodyBytes   = 1 << 20
	maxHeaderBytes = 16 << 10
	maxJSONDepth   = 100
	// maxJSONValues bounds what decoding a response takes: about 100 bytes for each value.
	maxJSONValues = 50_000
	// maxSmallBytes is the size up to which a response is small, as nearly all are.
	maxSmallBytes = 8 << 10
	// largeTimeout bounds how long the rest of a larger one may take. Few are read at the
	// same time.
	largeTimeout = 5 * time.Second
)

// Bounds on what the requests for all Configurations take of the memory.
const (
	// maxSharedRequests is how many there are at the same time, in addition to one for each
	// Configuration.
	maxSharedRequests = 256
	// maxLargeResponses is how many responses that are not small are held at the same time.
	maxLargeResponses = 8
	// maxIdleConns is how many connections of a Configuration wait for the next scan.
	maxIdleConns = 4
)

var (
	sharedRequests = pool.New(maxSharedRequests)
	largeResponses = pool.New(maxLargeResponses)
	// decoding is held while a response is decoded and used.
	decoding sync.Mutex
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
	timeout     time.Duration // of a request
	credentials func(*http.Request)
	// trusted are the hosts that the Configuration names, which alone get credentials.
	trusted map[string]bool
	large   *pool.Share // places for large responses
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
		timeout: wanted.Timeout(),
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:            dialer.DialContext,
				TLSClientConfig:        config,
				TLSHandshakeTimeout:    wanted.Timeout(),
				MaxResponseHeaderBytes: maxHeaderBytes,
				MaxIdleConns:           maxIdleConns,
				IdleConnTimeout:        30 * time.Second,
				DisableCompression:     true, // a small response may not become a large one
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		trusted: map[string]bool{},
		large:   largeResponses.Share(),
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

// get requests a URL and calls use with the response, which use must not keep. The error
// is that of use, or of few kinds; see [reasonOf]. The time that it waits for other
// requests is not the device's.
func (c *client) get(ctx context.Context, address string, use func(response) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer patience.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json, text/plain, */*")
	request.Header.Set("User-Agent", "akri-discovery")
	if c.credentials != nil && c.trusted[originOf(address)] {
		c.credentials(request)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxSmallBytes+1))
	if err == nil && len(text) > maxSmallBytes {
		patience.Stop()
		release, failed := c.large.Acquire(ctx)
		if failed != nil {
			return context.Cause(ctx)
		}
		defer release()
		patience.Reset(min(largeTimeout, c.timeout))
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(answer.Body, maxBodyBytes-maxSmallBytes))
		text = append(text, rest...)
	}
	switch {
	case err != nil:
		return err
	case len(text) > maxBodyBytes:
		return fmt.Errorf("%w: more than %d bytes", errTooLarge, maxBodyBytes)
	}
	decoding.Lock()
	defer decoding.Unlock()
	return use(response{status: answer.StatusCode, text: text})
}

func (c *client) close() { c.http.CloseIdleConnections() }

var (
	errTooLarge = errors.New("the response is too large")
	errNotJSON  = errors.New("the response is not JSON")
)

// json decodes the response.
func (r response) json() (any, error) {
	depth, values, quoted := 0, 0, false
	for i := 0; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',' || c == ':':
			values++
		case c == '{' || c == '[':
			values++
			if depth++; depth > maxJSONDepth {
				return nil, fmt.Errorf("%w: nested deeper than %d", errNotJSON, maxJSONDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if values > maxJSONValues {
		return nil, fmt.Errorf("%w: more than %d values", errTooLarge, maxJSONValues)
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
