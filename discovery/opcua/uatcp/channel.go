package uatcp

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// chunkBytes is the size of chunks that the server may send, as it is told. Some
	// servers send larger ones, which are accepted up to the bound of the answer.
	chunkBytes = 64 << 10
	// maxMessageBytes bounds an answer, with all its chunks.
	maxMessageBytes = 1 << 20
	// lifetime is the life of a channel in milliseconds; it is used for a few calls.
	lifetime = 60_000

	policyNone = "http://opcfoundation.org/UA/SecurityPolicy#None"

	headerBytes = 8  // type, final or not, size
	helloBytes  = 20 // the numbers of Hello and Acknowledge
)

// Channel is a connection to a server, with a secure channel without security. It is not
// safe for concurrent use.
type Channel struct {
	connection net.Conn
	input      *bufio.Reader
	url        string
	stop       func() bool

	id, token uint32
	sequence  uint32
}

// Open greets the server at the other end of a connection and opens a channel. The URL
// is the server's endpoint. All calls fail when ctx is done. The caller closes the
// connection if Open fails, and otherwise the channel.
func Open(ctx context.Context, connection net.Conn, url string) (*Channel, error) {
	c := &Channel{connection: connection, input: bufio.NewReader(connection), url: url}
	c.stop = context.AfterFunc(ctx, func() {
		_ = connection.SetDeadline(time.Unix(1, 0)) // ends all reads and writes; a closed connection needs none
	})
	if err := c.hello(); err != nil {
		c.stop()
		return nil, fmt.Errorf("greet the server: %w", err)
	}
	if err := c.open(); err != nil {
		c.stop()
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	return c, nil
}

// Close closes the channel, without waiting for an answer, and the connection.
func (c *Channel) Close() {
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
	for _, value := range []uint32{0, chunkBytes, chunkBytes, maxMessageBytes, 0} {
		e.uint32(value)
	}
	e.string(c.url)
	if _, err := c.connection.Write(e.data); err != nil {
		return err
	}
	kind, _, size, err := c.readHeader(maxMessageBytes)
	if err != nil {
		return err
	}
	if kind != "ACK" || size < helloBytes {
		return fmt.Errorf("%w: a message %q of %d bytes instead of an acknowledgement", ErrMalformed, kind, size)
	}
	_, err = c.input.Discard(size) // what the server accepts is more than our requests have
	return err
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
	return c.receive("OPN", openChannelResponseID, func(answer *decoder) {
		answer.skip(4) // the version
		c.id, c.token = answer.uint32(), answer.uint32()
	})
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
	e.requestHeader(c.sequence, time.Now())
	body(&e)
	binary.LittleEndian.PutUint32(e.data[4:], uint32(len(e.data)))
	_, err := c.connection.Write(e.data)
	return err
}

// receive receives the answer to the latest request. read reads what follows its header.
func (c *Channel) receive(kind string, response uint32, read func(*decoder)) error {
	answer := &decoder{from: &content{channel: c, kind: kind, free: maxMessageBytes}}
	id := answer.nodeID()
	status := answer.responseHeader()
	switch {
	case answer.err != nil:
		return answer.err
	case !status.good():
		return status
	case id == serviceFaultID:
		return fmt.Errorf("%w: a fault without a status", ErrMalformed)
	case id != response:
		return fmt.Errorf("%w: a message of type %d instead of %d", ErrMalformed, id, response)
	}
	read(answer)
	return answer.end()
}

// readHeader reads the header of a chunk, and returns the size of what follows.
func (c *Channel) readHeader(maximum int) (kind string, final byte, size int, err error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(c.input, header[:]); err != nil {
		return "", 0, 0, err
	}
	kind, final = string(header[:3]), header[3]
	announced := binary.LittleEndian.Uint32(header[4:])
	switch kind {
	case "ACK", "ERR", "OPN", "MSG":
	default:
		return "", 0, 0, fmt.Errorf("%w: it begins with %q: not an OPC UA server", ErrMalformed, header[:4])
	}
	switch {
	case final != 'F' && final != 'C' && final != 'A':
		return "", 0, 0, fmt.Errorf("%w: a chunk of type %q", ErrMalformed, final)
	case announced < headerBytes:
		return "", 0, 0, fmt.Errorf("%w: a chunk of %d bytes", ErrMalformed, announced)
	case announced > uint32(maximum):
		return "", 0, 0, fmt.Errorf("%w: a chunk of %d bytes, where %d are left", ErrTooLarge, announced, maximum)
	case kind == "ERR":
		reported := &decoder{from: &chunk{c.input, int(announced) - headerBytes}}
		return "", 0, 0, reported.failure()
	}
	return kind, final, int(announced) - headerBytes, nil
}

// errShort is what a read returns beyond the end of an answer or a chunk.
var errShort = fmt.Errorf("%w: it ends too early", ErrMalformed)

// chunk reads the rest of a chunk.
type chunk struct {
	input *bufio.Reader
	left  int
}

// Read implements [io.Reader].
func (c *chunk) Read(buffer []byte) (int, error) {
	if c.left == 0 {
		return 0, errShort
	}
	n, err := c.input.Read(buffer[:min(len(buffer), c.left)])
	c.left -= n
	return n, err
}

// content reads the content of an answer as it arrives, without the headers of its chunks, so
// that only what is kept of an answer takes memory.
type content struct {
	chunk   // the current one
	channel *Channel
	kind    string
	free    int // bytes that may still arrive
	isFinal bool
}

// Read implements [io.Reader].
func (c *content) Read(buffer []byte) (int, error) {
	for c.left == 0 && !c.isFinal {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	return c.chunk.Read(buffer)
}

// next reads the headers of the next chunk.
func (c *content) next() error {
	kind, final, size, err := c.channel.readHeader(c.free)
	if err != nil {
		return err
	}
	c.free -= headerBytes + size
	c.chunk, c.isFinal = chunk{c.channel.input, size}, final == 'F'
	header := &decoder{from: &c.chunk}
	header.skip(4) // the channel
	if kind == "OPN" {
		header.skipString()
		header.skipString()
		header.skipString()
	} else {
		header.skip(4) // the token
	}
	header.skip(4) // the sequence number
	request := header.uint32()
	switch {
	case header.err != nil:
		return header.err
	case kind != c.kind || request != c.channel.sequence:
		return fmt.Errorf("%w: a message %q for request %d instead of %q for %d",
			ErrMalformed, kind, request, c.kind, c.channel.sequence)
	case final == 'A':
		return header.failure()
	}
	return nil
}
