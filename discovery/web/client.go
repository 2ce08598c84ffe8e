package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/semaphore"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/internal/clienttls"
	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/discovery/web/details"
)

const (
	// sharedPlaces bounds the memory of the requests of all Configurations.
	sharedPlaces   = 128
	maxHeaderBytes = 16 << 10
	// maxIdleConns is how many connections of a Configuration wait for the next scan.
	maxIdleConns = 4
)

var shared = semaphore.NewWeighted(sharedPlaces)

// kind is a kind of requests.
type kind struct {
	maxBytes int64 // of a response
	places   int64 // of the shared ones
}

// An index takes more memory for each byte than a device does, since its items become devices.
var (
	deviceKind = kind{128 << 10, 1}
	indexKind  = kind{1 << 20, 16}
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
}

// response is a response, whose body may be cut.
type response struct {
	status int
	body   []byte
	cut    bool
}

func newClient(wanted *details.Details, properties map[string][]byte, networks Networks) (*client, error) {
	config, err := clienttls.Config("tls", wanted.TLS.CAProperty, wanted.TLS.CertProperty, wanted.TLS.KeyProperty, properties)
	if err != nil {
		return nil, discovery.Invalid("%w", err)
	}
	config.InsecureSkipVerify = wanted.TLS.InsecureSkipVerify
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

// get requests a URL and calls use with the response, which use must not keep. The error is
// that of use, or of few kinds; see [reasonOf]. The time that it waits for other requests is
// not the device's.
func (c *client) get(ctx context.Context, address string, k kind, use func(response) error) error {
	if err := shared.Acquire(ctx, k.places); err != nil {
		return err
	}
	defer shared.Release(k.places)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
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
	body, err := io.ReadAll(io.LimitReader(answer.Body, k.maxBytes+1))
	if err != nil {
		return err
	}
	return use(response{answer.StatusCode, body, int64(len(body)) > k.maxBytes})
}

func (c *client) close() { c.http.CloseIdleConnections() }

var (
	errTooLarge = errors.New("the response is too large")
	errNotJSON  = errors.New("the response is not JSON")
)

// whole returns an error if the body is cut.
func (r response) whole() error {
	if r.cut {
		return fmt.Errorf("%w: more than %d bytes", errTooLarge, len(r.body)-1)
	}
	return nil
}

// json returns the document in the response.
func (r response) json() (gjson.Result, error) {
	if err := r.whole(); err != nil {
		return gjson.Result{}, err
	}
	document, ok := jsonvalue.Parse(r.body)
	if !ok {
		return gjson.Result{}, errNotJSON
	}
	return document, nil
}

// originOf returns scheme and host of a URL.
func originOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}
