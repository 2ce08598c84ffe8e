package onvif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/icholy/digest"

	"akri.sh/akri/discovery/onvif/soap"
)

// Bounds on what a camera may send.
const (
	maxAnswer   = 1 << 20
	maxPicture  = 8 << 20
	maxText     = 256 // bytes of a name or a reason that people see
	callTimeout = 5 * time.Second
)

// ErrRefused means that the camera does not accept the user name and the password.
var ErrRefused = errors.New("the camera does not accept the user name and the password")

// ErrSilent means that the camera does not answer.
var ErrSilent = errors.New("no answer")

// Client fetches pictures from one camera. Its methods are safe for concurrent use.
type Client struct {
	device             *url.URL
	username, password string
	now                func() time.Time
	http               *http.Client

	mu      sync.Mutex
	picture *url.URL      // nil until it is known
	offset  time.Duration // of the camera's clock from ours
}

// New returns the client of a camera, whose device service has a URL. The user name may
// be empty.
func New(deviceURL, username, password string) (*Client, error) {
	device, err := url.Parse(deviceURL)
	if err != nil || device.Host == "" || device.Scheme != "http" && device.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a device service: it begins with http:// or https://", deviceURL)
	}
	device.User = nil
	// Proxies are for the internet, not for cameras.
	var transport http.RoundTripper = &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10}
	if username != "" {
		transport = &digest.Transport{Username: username, Password: password, FindChallenge: soap.FindChallenge, Transport: transport}
	}
	return &Client{
		device: device, username: username, password: password, now: time.Now,
		http: &http.Client{
			Timeout:       callTimeout,
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes the connections to the camera.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Picture fetches the current picture, a JPEG. If ctx ends first, the next call asks for
// the same picture again.
func (c *Client) Picture(ctx context.Context) ([]byte, error) {
	location, err := c.location(ctx)
	if err != nil {
		return nil, err
	}
	picture, err := c.fetch(ctx, location)
	if err != nil && ctx.Err() == nil {
		c.mu.Lock()
		c.picture = nil // the camera may have another one after a restart
		c.mu.Unlock()
	}
	return picture, err
}

// fetch gets a picture from its URL.
func (c *Client) fetch(ctx context.Context, location *url.URL) ([]byte, error) {
	response, body, err := c.do(ctx, http.MethodGet, location, nil, maxPicture)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetch the picture: %w", err)
	case response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("fetch the picture: %w", ErrRefused)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetch the picture: the camera answers with status %d", response.StatusCode)
	case !bytes.HasPrefix(body, []byte("\xff\xd8\xff")):
		return nil, errors.New("fetch the picture: the camera's answer is not a JPEG")
	}
	return body, nil
}

// do sends a request and reads the answer, unless the camera refuses the credentials.
func (c *Client) do(ctx context.Context, method string, target *url.URL, content []byte, limit int64) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/soap+xml; charset=utf-8")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, silence(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return nil, nil, ErrRefused
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, nil, silence(err)
	}
	if int64(len(body)) > limit {
		return nil, nil, fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return response, body, nil
}

// silence returns ErrSilent with its reason, as people should read it.
func silence(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w in time", ErrSilent)
	}
	if failure, ok := errors.AsType[*url.Error](err); ok {
		err = failure.Err // without the URL, which people see elsewhere
	}
	return fmt.Errorf("%w: %w", ErrSilent, err)
}

// own returns the URL of a resource of the camera, and refuses those of other hosts.
func (c *Client) own(text string) (*url.URL, error) {
	target, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
		return nil, fmt.Errorf("the camera hands out %q, which is not an HTTP URL", clip(text))
	case !strings.EqualFold(target.Hostname(), c.device.Hostname()):
		return nil, fmt.Errorf("the camera at %s hands out a URL of another host, %s: correct the address in the camera's settings",
			c.device.Hostname(), clip(target.Hostname()))
	case c.device.Scheme == "https" && target.Scheme == "http":
		return nil, errors.New("the camera hands out an http URL, although its device service has https: correct the camera's settings")
	}
	target.User = nil
	return target, nil
}

// clip shortens a text of the camera.
func clip(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
