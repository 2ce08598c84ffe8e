package soap

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	// maxHeaderBytes bounds the header of an answer; [envelope.MaxBytes] is for the body.
	maxHeaderBytes = 16 << 10
	// callTimeout bounds a call with its redirects and its authentication.
	callTimeout = 5 * time.Second
	// maxRequests bounds the requests of a call: the first, with digest authentication,
	// and two redirects.
	maxRequests = 4
)

// Options configure a Client.
type Options struct {
	// InsecureSkipVerify accepts any certificate of a device.
	InsecureSkipVerify bool
	// Check returns an error if a Client must not connect to an address. Names of hosts
	// have been resolved.
	Check func(netip.Addr) error
}

// Client calls ONVIF devices. It is safe for concurrent use.
type Client struct {
	plain  *net.Dialer
	secure *tls.Dialer
}

// New returns a Client.
func New(options Options) *Client {
	plain := &net.Dialer{Timeout: callTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		endpoint, err := netip.ParseAddrPort(address)
		if err == nil && options.Check != nil {
			err = options.Check(endpoint.Addr())
		}
		return err
	}}
	config := &tls.Config{InsecureSkipVerify: options.InsecureSkipVerify, MinVersion: tls.VersionTLS10}
	return &Client{plain: plain, secure: &tls.Dialer{NetDialer: plain, Config: config}}
}

// Call is a call of an operation.
type Call struct {
	// URL is the URL of the service.
	URL string
	// Namespace is the namespace of the operation.
	Namespace string
	// Operation is its name.
	Operation string
	// Arguments are its child elements, as XML in which the prefix w is bound to
	// Namespace and tt to ONVIF's schema.
	Arguments string
	// Credentials authenticate the call; nil for none.
	Credentials *Credentials
	// Offset is how far the clock of the device is ahead of ours.
	Offset time.Duration
}

// Do performs a call. An error is a *Fault, a *StatusError, or any other one if the
// device has not answered with SOAP.
func (c *Client) Do(ctx context.Context, call Call) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	target, err := url.Parse(call.URL)
	if err != nil {
		return Answer{}, errors.New("not a valid URL")
	}
	token := call.Credentials.token(time.Now().Add(call.Offset))
	authorization := ""
	for range maxRequests {
		response, err := c.post(ctx, target, call, token, authorization)
		if errors.Is(err, errClosed) {
			response, err = c.post(ctx, target, call, token, authorization) // all calls only read
		}
		if err != nil {
			return Answer{}, err
		}
		switch {
		case response.status >= 300 && response.status < 400:
			if target, err = redirect(target, response.header.Get("Location")); err != nil {
				return Answer{}, err
			}
		case response.status == http.StatusUnauthorized && call.Credentials != nil && authorization == "":
			if authorization = call.Credentials.authorize(response.header, http.MethodPost, target.RequestURI()); authorization == "" {
				return Answer{}, &StatusError{Code: response.status}
			}
			token = "" // a device may refuse both at once
		default:
			return answerOf(response)
		}
	}
	return Answer{}, errors.New("too many redirects")
}

// post sends one request.
func (c *Client) post(ctx context.Context, target *url.URL, call Call, token, authorization string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(call.envelope(token)))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", `application/soap+xml; charset=utf-8; action="`+call.Namespace+"/"+call.Operation+`"`)
	request.Header.Set("User-Agent", "akri-discovery")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return c.exchange(ctx, request)
}

// redirect returns the URL to go to, which must be on the same host and not less secure.
func redirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || location == "" {
		return nil, errors.New("redirected to no valid URL")
	}
	secure := to.Scheme == "https" || to.Scheme == "http" && from.Scheme == "http"
	if !secure || to.Hostname() != from.Hostname() || to.User != nil {
		return nil, errors.New("redirected to another host, or away from https")
	}
	return to, nil
}

func (c Call) envelope(token string) []byte {
	header := ""
	if token != "" {
		header = "<s:Header>" + token + "</s:Header>"
	}
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"`+
		` xmlns:w="%s" xmlns:tt="http://www.onvif.org/ver10/schema">%s<s:Body><w:%s>%s</w:%[3]s></s:Body></s:Envelope>`,
		c.Namespace, header, c.Operation, c.Arguments)
}
