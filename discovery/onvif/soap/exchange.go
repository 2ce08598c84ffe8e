package soap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"akri.sh/akri/discovery/onvif/envelope"
)

// reply is what a device has answered to an HTTP request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// errClosed means that a device has closed the connection without an answer.
var errClosed = errors.New("the device closes the connection without an answer")

// exchange sends a request on a connection of its own, because some devices close one after
// each answer without a word, and others serve one at a time. Package http would refuse what
// many of them answer: lines without a colon in the header, zeros before it, wrong lengths.
func (c *Client) exchange(ctx context.Context, request *http.Request) (reply, error) {
	connection, err := c.dial(ctx, request.URL)
	if err != nil {
		return reply{}, err
	}
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer func() { stop(); connection.Close() }()
	request.Close = true
	_ = request.Write(connection) // a device may answer before it has read everything
	var data []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := connection.Read(buffer)
		data = append(data, buffer[:n]...)
		found, length := readReply(data)
		hasLength := length >= 0 && len(found.body) >= length
		arrived := found.body[max(0, len(found.body)-n-128):] // the end tag may arrive in two parts
		ended := envelopeEnd.Match(arrived) || hasLength && !bytes.Contains(found.body, []byte("Envelope")) ||
			len(found.body) > envelope.MaxBytes || found.status == http.StatusUnauthorized || found.status/100 == 3
		switch {
		case found.status == 0 && len(data) > maxHeaderBytes:
			return reply{}, fmt.Errorf("not accepted: a header with more than %d bytes", maxHeaderBytes)
		case found.status > 0 && (ended || err != nil && (ctx.Err() == nil || hasLength || found.status != http.StatusOK)):
			return found, nil
		case err == nil:
		case ctx.Err() != nil:
			return reply{}, ctx.Err()
		case len(data) == 0:
			return reply{}, fmt.Errorf("%w: %w", errClosed, err)
		default:
			return reply{}, errors.New("the answer is not HTTP, or it is cut off")
		}
	}
}

// dial connects to the host of a URL.
func (c *Client) dial(ctx context.Context, to *url.URL) (net.Conn, error) {
	dial, port := c.plain.DialContext, "80"
	if to.Scheme == "https" {
		dial, port = c.secure.DialContext, "443"
	}
	return dial(ctx, "tcp", net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), port)))
}

var (
	statusLine  = regexp.MustCompile(`HTTP/\d(?:\.\d)?[ \t]+(\d{3})`)
	headerEnd   = regexp.MustCompile(`\r?\n\r?\n`)
	envelopeEnd = regexp.MustCompile(`</(?:[^<>\s]+:)?Envelope\s*>`)
)

// readReply reads what has arrived of a reply, with the length that it announces, -1 if it
// does not or is wrong. The status is 0 until the header is complete.
func readReply(data []byte) (found reply, length int) {
	before, _, isXML := bytes.Cut(data, []byte("<"))
	line := statusLine.FindSubmatchIndex(before)
	if line == nil && isXML {
		return reply{status: http.StatusOK, header: http.Header{}, body: data}, -1
	}
	if line == nil {
		return reply{}, -1
	}
	end := headerEnd.FindIndex(data[line[1]:])
	if end == nil {
		return reply{}, -1
	}
	head, body := string(data[line[1]:line[1]+end[0]]), data[line[1]+end[1]:]
	found.status, _ = strconv.Atoi(string(data[line[2]:line[3]]))
	if found.status < http.StatusOK { // another one follows
		return readReply(body)
	}
	found.header = http.Header{}
	for field := range strings.Lines(strings.ReplaceAll(head, "\x00", "")) {
		if name, value, ok := strings.Cut(field, ":"); ok {
			found.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	found.body = body
	isChunked := strings.EqualFold(found.header.Get("Transfer-Encoding"), "chunked")
	if isChunked && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		unchunked, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
		if err == nil {
			return reply{found.status, found.header, unchunked}, len(unchunked)
		}
		if len(unchunked) > 0 { // else they are written in another way, around the document
			found.body = unchunked
		}
	}
	length, err := strconv.Atoi(found.header.Get("Content-Length"))
	if err != nil || isChunked {
		length = -1
	}
	return found, length
}
