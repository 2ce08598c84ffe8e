package uatcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"akri.sh/akri/internal/deadline"
)

const (
	// chunkBytes is the size of chunks that the server may send, as it is told. Some
	// servers send larger ones, which are accepted up to the bound of the answer.
	chunkBytes = 64 << 10
	// maxMessageBytes bounds an answer, with all its chunks.
	maxMessageBytes = 1 << 20
	// maxGreetingBytes bounds the answers before the first call. They have 28 bytes and, if
	// the server adds a certificate, some thousand.
	maxGreetingBytes = 8 << 10
	// maxChunks bounds the chunks of an answer.
	maxChunks = 256
	// maxReading bounds how long an answer arrives, from its first bytes.
	maxReading = 2 * time.Second
	// lifetime is the life of a channel in milliseconds; it is used for two calls.
	lifetime = 60_000

	policyNone = "http://opcfoundation.org/UA/SecurityPolicy#None"

	headerBytes = 8  // type, final or not, size
	helloBytes  = 20 // the numbers of Hello and Acknowledge
)

// Limits bound what a channel costs.
type Limits struct {
	// Timeout bounds the life of the channel, without the time that Reserve takes.
	Timeout time.Duration
	// Reserve is called when an answer to a call begins to arrive, before memory is
	// allocated for it. It may wait. release is called when the channel makes the next
	// call or is closed. If Reserve is nil, answers are read as they arrive.
	Reserve func(context.Context) (release func(), err error)
}

// Channel is a connection to a server, with a secure channel without security. It is not
// safe for concurrent use.
type Channel struct {
	connection net.Conn
	url        string
	deadline   time.Time
	stop       func() bool
	canceled   func() error           // the error of the context
	reserve    func() (func(), error) // see Limits.Reserve
	release    func()                 // what is reserved, or nil

	isOpen    bool // the next answers are those to calls
	id, token uint32
	sequence  uint32
}

// past is a deadline that ends all reads and writes.
var past = time.Unix(1, 0)

// Open greets the server at the other end of a connection and opens a channel. The URL
// is the server's endpoint. All calls fail when ctx is done. The caller closes the
// connection if Open fails, and otherwise the channel.
func Open(ctx context.Context, connection net.Conn, url string, limits Limits) (*Channel, error) {
	c := &Channel{
		connection: connection, url: url, deadline: time.Now().Add(limits.Timeout), canceled: ctx.Err,
		reserve: func() (func(), error) { return func() {}, nil },
	}
	if limits.Reserve != nil {
		c.reserve = func() (func(), error) { return limits.Reserve(ctx) }
	}
	if err := connection.SetDeadline(c.deadline); err != nil {
		return nil, err
	}
	c.stop = context.AfterFunc(ctx, func() { _ = connection.SetDeadline(past) }) // a closed connection needs none
	if err := errors.Join(c.hello(), ctx.Err()); err != nil {
		c.stop()
		return nil, fmt.Errorf("greet the server: %w", err)
	}
	if err := c.open(); err != nil {
		c.stop()
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	c.isOpen = true
	return c, nil
}

// Close closes the channel, without waiting for an answer, and the connection.
func (c *Channel) Close() {
	c.finish()
	defer c.connection.Close()
	defer c.stop()
	// The server notices the end of the connection if the message cannot be sent.
	_ = c.send("CLO", closeChannelRequestID, func(*encoder) {})
}

// hello negotiates the sizes of messages.
func (c *Channel) hello() error {
	var e encoder
	e.bytes([]byte("HELF")...)
	e.uint32(uint32(headerBytes + helloBytes + 4 + len(c.url)))
	for _, value := range []uint32{0, chunkBytes, chunkBytes, maxMessageBytes, maxChunks} {
		e.uint32(value)
	}
	e.string(c.url)
	if _, err := c.connection.Write(e.data); err != nil {
		return err
	}
	kind, _, body, err := c.read(maxGreetingBytes)
	if err != nil {
		return err
	}
	if kind != "ACK" || len(body) < helloBytes {
		return fmt.Errorf("%w: a message %q of %d bytes instead of an acknowledgement", ErrMalformed, kind, len(body))
	}
	return nil
}

// open opens the secure channel.
func (c *Channel) open() error {
	if err := c.send("OPN", openChannelRequestID, func(e *encoder) {
		e.uint32(0) // the version
		e.uint32(0) // a new channel
		e.uint32(1) // no security
		e.uint32(0) // an empty nonce
		e.uint32(lifetime)
	}); err != nil {
		return err
	}
	answer, err := c.receive("OPN", openChannelResponseID)
	if err != nil {
		return err
	}
	answer.skip(4) // the version
	c.id, c.token = answer.uint32(), answer.uint32()
	return answer.err
}

// call sends a request and returns the answer after its header.
func (c *Channel) call(request uint16, response uint32, body func(*encoder)) (*decoder, error) {
	c.finish()
	if err := c.send("MSG", request, body); err != nil {
		return nil, err
	}
	return c.receive("MSG", response)
}

// begin waits until an answer, which has begun to arrive, may be read. The server has not
// to answer for that time.
func (c *Channel) begin() error {
	began := time.Now()
	release, err := c.reserve()
	if err != nil {
		return err
	}
	c.release = release
	now := time.Now()
	c.deadline = c.deadline.Add(now.Sub(began))
	return c.setDeadline(deadline.Earliest(c.deadline, now.Add(maxReading)))
}

// finish gives back what was reserved for the latest answer.
func (c *Channel) finish() {
	if c.release != nil {
		c.release()
		c.release = nil
	}
	_ = c.setDeadline(c.deadline) // otherwise the next write fails
}

// setDeadline sets a deadline, unless the context is done.
func (c *Channel) setDeadline(end time.Time) error {
	if err := c.connection.SetDeadline(end); err != nil {
		return err
	}
	if err := c.canceled(); err != nil { // its deadline may just have been replaced
		return errors.Join(err, c.connection.SetDeadline(past))
	}
	return nil
}

// send sends a request, which always fits into one chunk.
func (c *Channel) send(kind string, request uint16, body func(*encoder)) error {
	c.sequence++
	var e encoder
	e.bytes([]byte(kind + "F")...)
	e.uint32(0) // the size, see below
	e.uint32(c.id)
	if kind == "OPN" {
		e.string(policyNone)
		e.null() // no certificate of ours
		e.null() // none of the server's
	} else {
		e.uint32(c.token)
	}
	e.uint32(c.sequence)
	e.uint32(c.sequence) // also identifies the request
	e.messageID(request)
	e.requestHeader(c.sequence, time.Now(), time.Until(c.deadline))
	body(&e)
	binary.LittleEndian.PutUint32(e.data[4:], uint32(len(e.data)))
	_, err := c.connection.Write(e.data)
	return err
}

// receive returns the answer to the latest request, after its header.
func (c *Channel) receive(kind string, response uint32) (*decoder, error) {
	message, err := c.message(kind)
	if err != nil {
		return nil, err
	}
	answer := &decoder{data: message}
	id := answer.nodeID()
	status := answer.responseHeader()
	switch {
	case answer.err != nil:
		return nil, answer.err
	case !status.good():
		return nil, status
	case id == serviceFaultID:
		return nil, fmt.Errorf("%w: a fault without a status", ErrMalformed)
	case id != response:
		return nil, fmt.Errorf("%w: a message of type %d instead of %d", ErrMalformed, id, response)
	}
	return answer, nil
}

// message reads the chunks of an answer and returns their content.
func (c *Channel) message(want string) ([]byte, error) {
	maximum := maxMessageBytes
	if want == "OPN" {
		maximum = maxGreetingBytes
	}
	var content []byte
	for count := 1; ; count++ {
		kind, final, body, err := c.read(maximum)
		if err != nil {
			return nil, err
		}
		chunk := &decoder{data: body}
		chunk.skip(4) // the channel
		if kind == "OPN" {
			chunk.skipString()
			chunk.skipString()
			chunk.skipString()
		} else {
			chunk.skip(4) // the token
		}
		chunk.skip(4) // the sequence number
		request := chunk.uint32()
		switch {
		case chunk.err != nil:
			return nil, chunk.err
		case kind != want || request != c.sequence:
			return nil, fmt.Errorf("%w: a message %q for request %d instead of %q for %d", ErrMalformed, kind, request, want, c.sequence)
		case final == 'A':
			return nil, StatusCode(chunk.uint32() | 0x80000000)
		case len(content)+len(chunk.data) > maximum:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maximum)
		case final == 'F':
			return append(content, chunk.data...), nil
		case count >= maxChunks:
			return nil, fmt.Errorf("%w: more than %d chunks", ErrTooLarge, maxChunks)
		}
		content = append(content, chunk.data...)
	}
}

// read reads a chunk.
func (c *Channel) read(maximum int) (kind string, final byte, body []byte, err error) {
	kind, final, size, err := c.readHeader(maximum)
	if err != nil {
		return "", 0, nil, err
	}
	if c.isOpen && c.release == nil {
		if err := c.begin(); err != nil {
			return "", 0, nil, err
		}
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(c.connection, body); err != nil {
		return "", 0, nil, err
	}
	if kind == "ERR" {
		answer := &decoder{data: body}
		status := StatusCode(answer.uint32() | 0x80000000)
		return "", 0, nil, status
	}
	return kind, final, body, nil
}

// readHeader reads the header of a chunk, and returns the size of what follows.
func (c *Channel) readHeader(maximum int) (kind string, final byte, size uint32, err error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(c.connection, header[:]); err != nil {
		return "", 0, 0, err
	}
	kind, final, size = string(header[:3]), header[3], binary.LittleEndian.Uint32(header[4:])
	switch kind {
	case "ACK", "ERR", "OPN", "MSG":
	default:
		return "", 0, 0, fmt.Errorf("%w: it begins with %q: not an OPC UA server", ErrMalformed, header[:4])
	}
	switch {
	case final != 'F' && final != 'C' && final != 'A':
		return "", 0, 0, fmt.Errorf("%w: a chunk of type %q", ErrMalformed, final)
	case size < headerBytes:
		return "", 0, 0, fmt.Errorf("%w: a chunk of %d bytes", ErrMalformed, size)
	case size > uint32(maximum):
		return "", 0, 0, fmt.Errorf("%w: a chunk of %d bytes, more than %d", ErrTooLarge, size, maximum)
	}
	return kind, final, size - headerBytes, nil
}
