package soap

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
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
	dial, port := c.plain.DialContext, "80"
	if request.URL.Scheme == "https" {
		dial, port = c.secure.DialContext, "443"
	}
	connection, err := dial(ctx, "tcp", net.JoinHostPort(request.URL.Hostname(), cmp.Or(request.URL.Port(), port)))
	if err != nil {
		return reply{}, err
	}
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer func() { stop(); connection.Close() }()
	request.Close = true
	_ = request.Write(connection) // a device may answer before it has read everything
	reader := bufio.NewReader(connection)
	var found reply
	found.status, found.header, err = readHeader(reader)
	hasEnded := found.status == http.StatusUnauthorized || found.status/100 == 3 // the body says nothing more
	if err == nil && !hasEnded {
		found.body, hasEnded = readBody(reader, found.header)
	}
	if ctx.Err() != nil && (err != nil || !hasEnded && found.status == http.StatusOK) {
		return reply{}, ctx.Err()
	}
	return found, err
}

var (
	statusLine  = regexp.MustCompile(`HTTP/\d(?:\.\d)?[ \t]+(\d{3})`)
	envelopeEnd = regexp.MustCompile(`</(?:[^<>\s]+:)?Envelope\s*>`)
)

// readHeader reads up to the body, which may begin at once. A status below 200 precedes another
// one.
func readHeader(reader *bufio.Reader) (status int, header http.Header, err error) {
	header = http.Header{}
	var line []byte
	for n := range maxHeaderBytes {
		next, err := reader.ReadByte()
		switch {
		case err != nil && n == 0:
			return 0, nil, fmt.Errorf("%w: %w", errClosed, err)
		case err != nil:
			return 0, nil, errors.New("the answer is not HTTP, or it is cut off")
		case next == '<' && status == 0:
			return http.StatusOK, header, reader.UnreadByte()
		case next == 0:
		case next != '\n':
			line = append(line, next)
		case status >= http.StatusOK && len(bytes.TrimSpace(line)) == 0:
			return status, header, nil
		default:
			if found := statusLine.FindSubmatch(line); found != nil && status < http.StatusOK {
				status, _ = strconv.Atoi(string(found[1]))
			} else if name, value, ok := strings.Cut(string(line), ":"); ok {
				header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
			}
			line = line[:0]
		}
	}
	return 0, nil, fmt.Errorf("not accepted: a header with more than %d bytes", maxHeaderBytes)
}

// readBody reads a body until its envelope ends, or until its length if there is none. hasEnded
// is false if what precedes the end of the connection is not known to be all.
func readBody(reader *bufio.Reader, header http.Header) (body []byte, hasEnded bool) {
	from, length := io.Reader(reader), math.MaxInt
	if strings.EqualFold(header.Get("Transfer-Encoding"), "chunked") {
		if first, _ := reader.Peek(1); bytes.ContainsAny(first, "0123456789abcdefABCDEF") {
			from = httputil.NewChunkedReader(reader)
		}
	} else if announced, err := strconv.Atoi(header.Get("Content-Length")); err == nil && announced >= 0 {
		length = announced
	}
	buffer, isEnvelope := make([]byte, 4<<10), false
	for len(body) <= envelope.MaxBytes {
		n, err := from.Read(buffer)
		body = append(body, buffer[:n]...)
		arrived := body[max(0, len(body)-n-128):] // the end tag may arrive in several parts
		isEnvelope = isEnvelope || bytes.Contains(arrived, []byte("Envelope"))
		mayEnd := bytes.Contains(buffer[:n], []byte(">"))
		switch {
		case mayEnd && envelopeEnd.Match(arrived) || !isEnvelope && len(body) >= length:
			return body, true
		case err == nil:
		case len(body) == 0 && from != reader && !errors.Is(err, io.EOF):
			from = reader // the chunks are written in another way, around the document
		default:
			return body, errors.Is(err, io.EOF) || len(body) >= length
		}
	}
	return body, true
}
