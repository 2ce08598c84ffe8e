package soap

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"akri.sh/akri/discovery/internal/pool"
	"akri.sh/akri/discovery/onvif/xmltree"
)

const (
	// maxBodyBytes bounds an answer of a device.
	maxBodyBytes = 1 << 20
	// maxSmallBytes is the size up to which an answer is small, as nearly all are. Devices may
	// send larger ones slowly, so that few are read at the same time.
	maxSmallBytes   = 32 << 10
	maxLargeAnswers = 8
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 64 << 10
	// callTimeout bounds a call with its redirects and its authentication.
	callTimeout = 5 * time.Second
	// maxRequests bounds the requests of a call: the first, with digest authentication,
	// and two redirects.
	maxRequests = 4
	// maxIdleConns bounds connections that wait for the next call.
	maxIdleConns = 64
	idleTimeout  = 2 * time.Second
)

// Options configure a Client.
type Options struct {
	// InsecureSkipVerify accepts any certificate of a device.
	InsecureSkipVerify bool
	// Check returns an error if a Client must not connect to an address. Names of hosts
	// have been resolved.
	Check func(netip.Addr) error
}

// All clients share the places for large answers, and one answer is parsed at a time: the
// tree may take many times the memory of its text.
var (
	largeAnswers = pool.New(maxLargeAnswers)
	parsing      sync.Mutex
)

// Client calls ONVIF devices. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	large *pool.Share // places for large answers
}

// New returns a Client. Call Close when it is no longer needed.
func New(options Options) *Client {
	dialer := net.Dialer{Timeout: callTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		endpoint, err := netip.ParseAddrPort(address)
		if err == nil && options.Check != nil {
			err = options.Check(endpoint.Addr())
		}
		return err
	}}
	return &Client{large: largeAnswers.Share(), http: &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: options.InsecureSkipVerify, MinVersion: tls.VersionTLS10},
			DisableCompression:     true,
			MaxIdleConns:           maxIdleConns,
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

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

// Answer is what a device has answered.
type Answer struct {
	// Response is the element in the body.
	Response *xmltree.Element
	// Date is the device's time in the header, if any.
	Date time.Time
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
	place := largePlace{share: c.large}
	defer place.leave()
	token := call.Credentials.token(time.Now().Add(call.Offset))
	authorization := ""
	for range maxRequests {
		response, err := c.post(ctx, target, call, token, authorization)
		if err != nil {
			return Answer{}, err
		}
		body, err := place.read(ctx, response.Body)
		if err != nil {
			return Answer{}, err
		}
		challenges := response.Header.Values("WWW-Authenticate")
		switch status := response.StatusCode; {
		case status >= 300 && status < 400:
			if target, err = redirect(target, response.Header.Get("Location")); err != nil {
				return Answer{}, err
			}
		case status == http.StatusUnauthorized && call.Credentials != nil && authorization == "":
			if authorization = call.Credentials.authorize(challenges, http.MethodPost, target.RequestURI()); authorization == "" {
				return Answer{}, &StatusError{Code: status}
			}
			token = "" // a device may refuse both at once
		default:
			return answerOf(response, body)
		}
	}
	return Answer{}, errors.New("too many redirects")
}

// post sends one request. The body of the response must be read and closed.
func (c *Client) post(ctx context.Context, target *url.URL, call Call, token, authorization string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(call.envelope(token)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", `application/soap+xml; charset=utf-8; action="`+call.Namespace+"/"+call.Operation+`"`)
	request.Header.Set("User-Agent", "akri-discovery")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return c.http.Do(request)
}

// largePlace is the place of a call among those with large answers, once it has one.
type largePlace struct {
	share   *pool.Share
	release func() // nil without a place
}

// read reads and closes the body of a response. If it is large, it waits for a place, which
// the call keeps until its end.
func (p *largePlace) read(ctx context.Context, body io.ReadCloser) ([]byte, error) {
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxSmallBytes+1))
	if err == nil && len(data) > maxSmallBytes {
		if err = p.take(ctx); err == nil {
			var rest []byte
			rest, err = io.ReadAll(io.LimitReader(body, maxBodyBytes-maxSmallBytes))
			data = append(data, rest...)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(data) > maxBodyBytes:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxBodyBytes)
	}
	return data, nil
}

func (p *largePlace) take(ctx context.Context) (err error) {
	if p.release == nil {
		p.release, err = p.share.Acquire(ctx)
	}
	return err
}

func (p *largePlace) leave() {
	if p.release != nil {
		p.release()
	}
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

// answerOf reads the body of a response.
func answerOf(response *http.Response, body []byte) (Answer, error) {
	var answer Answer
	answer.Date, _ = http.ParseTime(response.Header.Get("Date")) // zero if there is none
	parsing.Lock()
	envelope, err := xmltree.Parse(body)
	parsing.Unlock()
	content := envelope.Find("Body")
	switch {
	case err == nil && envelope.Name.Local == "Envelope" && content.Find("Fault") != nil:
		return answer, faultOf(content.Find("Fault"))
	case response.StatusCode != http.StatusOK:
		return answer, &StatusError{Code: response.StatusCode}
	case err != nil:
		return answer, err
	case envelope.Name.Local != "Envelope" || content == nil || len(content.Children) == 0:
		return answer, errors.New("not a SOAP envelope with a response")
	}
	answer.Response = content.Children[0]
	return answer, nil
}

// Fault is a SOAP fault.
type Fault struct {
	// Unauthorized means that the device wants other credentials.
	Unauthorized bool
}

func faultOf(element *xmltree.Element) *Fault {
	code := element.Value("Code", "Subcode", "Value") + element.Value("Code", "Subcode", "Subcode", "Value") + element.Value("faultcode")
	for _, word := range []string{"NotAuthorized", "FailedAuthentication", "SenderNotAuthorized"} {
		if strings.Contains(code, word) {
			return &Fault{Unauthorized: true}
		}
	}
	return &Fault{}
}

// Error implements error. It has no text of the device.
func (f *Fault) Error() string {
	if f.Unauthorized {
		return "the device refuses the credentials"
	}
	return "the device answers with a SOAP fault"
}

// StatusError is an answer with another status than 200 and without SOAP.
type StatusError struct{ Code int }

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Code) }

// Unauthorized reports whether a device wants other credentials.
func Unauthorized(err error) bool {
	fault, isFault := errors.AsType[*Fault](err)
	status, isStatus := errors.AsType[*StatusError](err)
	return isFault && fault.Unauthorized ||
		isStatus && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden)
}

// Alive reports whether the result of a call shows that an ONVIF device is there, even if
// it refuses the call.
func Alive(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*Fault](err); ok {
		return true
	}
	status, ok := errors.AsType[*StatusError](err)
	return ok && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden || status.Code == http.StatusBadRequest)
}
