package connection

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	// dialTimeout bounds the time until the broker has accepted the connection.
	dialTimeout = 10 * time.Second
	// writeTimeout bounds the time for a packet to be sent.
	writeTimeout = 10 * time.Second
	// KeepAlive is how often Ping must be called.
	KeepAlive = 20 * time.Second
	// readTimeout is how long the broker may send nothing. It answers pings.
	readTimeout = KeepAlive + 15*time.Second
	// maxControlPacket bounds all packets but PUBLISH, which are small. The largest one acknowledges
	// subscriptions with a byte each.
	maxControlPacket = 4096
	// maxTopicOverhead is the room for the topic in a PUBLISH, in addition to the payload.
	maxTopicOverhead = 2 + 65535
	// SmallBytes is the size up to which a packet is small, as nearly all are.
	SmallBytes = 8 << 10
)

// Options configure a connection.
type Options struct {
	// Address is HOST:PORT.
	Address string
	// TLS is nil for a connection that is not encrypted.
	TLS *tls.Config
	// ClientID identifies the handler.
	ClientID string
	// Username and Password may be empty.
	Username, Password string
	// MaxPayload bounds payloads. Longer ones are skipped.
	MaxPayload int
	// Skipped is called for each message that is skipped.
	Skipped func()
	// Reserve is called before a message of more than SmallBytes is read, with its size. An
	// error breaks the connection. The message has the size as Packet.Reserved.
	Reserve func(bytes int) error
}

// RefusedError is an answer of the broker that refuses the connection.
type RefusedError struct {
	// Code is MQTT's return code.
	Code byte
}

// Error implements error.
func (e *RefusedError) Error() string {
	switch e.Code {
	case packets.ErrRefusedBadUsernameOrPassword:
		return "the broker refuses the user name or the password: check the discoveryProperties username and password"
	case packets.ErrRefusedNotAuthorised:
		return "the broker refuses the client: check the discoveryProperties username and password, and the broker's access rules"
	case packets.ErrRefusedIDRejected:
		return "the broker refuses the client id: check broker.clientIdPrefix"
	case packets.ErrRefusedBadProtocolVersion:
		return "the broker does not support MQTT 3.1.1"
	}
	return fmt.Sprintf("the broker refuses the connection with code %d", e.Code)
}

// Connection is a connection to a broker. One goroutine may read and one may write.
type Connection struct {
	options Options
	net     net.Conn
	reader  *bufio.Reader
	buffer  []byte // for small packets
	// reserved is the size of the packet that was read last, if it is large.
	reserved int
	nextID   uint16
	// pings counts the pings that were sent, and pongs the answers.
	pings, pongs uint64
}

// Dial connects to a broker.
func Dial(ctx context.Context, options Options) (*Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", options.Address)
	if err != nil {
		return nil, err
	}
	if options.TLS != nil {
		secured := tls.Client(conn, options.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, fmt.Errorf("TLS: %w", err)
		}
		conn = secured
	}
	c := &Connection{options: options, net: conn, reader: newReader(conn)}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = c.connect()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil && !errors.As(err, new(*RefusedError)) {
			err = fmt.Errorf("the broker did not answer: %w", ctx.Err())
		}
		return nil, err
	}
	return c, nil
}

// newReader returns a reader for a connection.
func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReaderSize(patient{conn}, SmallBytes) }

// patient is a connection that breaks when nothing has arrived for readTimeout. A large
// packet may take longer, even one that is skipped: if it broke the connection, the next one
// would begin with the same retained message.
type patient struct{ net.Conn }

// Read implements [io.Reader].
func (p patient) Read(data []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		return 0, err
	}
	return p.Conn.Read(data)
}

// connect sends CONNECT and reads the answer.
func (c *Connection) connect() error {
	packet, _ := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	packet.ProtocolName, packet.ProtocolVersion = "MQTT", 4
	packet.CleanSession, packet.ClientIdentifier = true, c.options.ClientID
	packet.Keepalive = uint16(KeepAlive / time.Second * 3 / 2) // brokers add half of it again
	if c.options.Username != "" {
		packet.UsernameFlag, packet.Username = true, c.options.Username
		packet.PasswordFlag, packet.Password = c.options.Password != "", []byte(c.options.Password)
	}
	if err := c.write(packet); err != nil {
		return err
	}
	errOther := errors.New("the answer is not MQTT: check the port in broker.url")
	if first, err := c.reader.Peek(1); err == nil && first[0] != packets.Connack<<4 {
		return errOther
	}
	_, body, _, err := c.read()
	switch {
	case err != nil:
		return err
	case len(body) != 2:
		return errOther
	case body[1] != packets.Accepted:
		return &RefusedError{Code: body[1]}
	}
	return nil
}

// Close closes the connection. It says goodbye if that does not block.
func (c *Connection) Close() {
	_ = c.net.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // the broker may be gone
	_ = packets.NewControlPacket(packets.Disconnect).Write(c.net)
	c.net.Close()
}

// Ping makes the broker answer. The returned number is that of the answer.
func (c *Connection) Ping() (number uint64, err error) {
	c.pings++
	return c.pings, c.write(packets.NewControlPacket(packets.Pingreq))
}

// Publish sends a message.
func (c *Connection) Publish(topic string, payload []byte) error {
	packet, _ := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	packet.TopicName, packet.Payload = topic, payload
	return c.write(packet)
}

// Subscribe subscribes to filters. The returned id is that of the acknowledgement.
func (c *Connection) Subscribe(filters []string) (id uint16, err error) {
	packet, _ := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	packet.MessageID, packet.Topics, packet.Qoss = c.id(), filters, make([]byte, len(filters))
	return packet.MessageID, c.write(packet)
}

// Unsubscribe ends subscriptions.
func (c *Connection) Unsubscribe(filters []string) error {
	packet, _ := packets.NewControlPacket(packets.Unsubscribe).(*packets.UnsubscribePacket)
	packet.MessageID, packet.Topics = c.id(), filters
	return c.write(packet)
}

// id returns the next packet id, which is never 0.
func (c *Connection) id() uint16 {
	if c.nextID++; c.nextID == 0 {
		c.nextID = 1
	}
	return c.nextID
}

func (c *Connection) write(packet packets.ControlPacket) error {
	if err := c.net.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return packet.Write(c.net)
}

// Packet is a packet from the broker: a message, the acknowledgement of a subscription, or
// the answer to a ping.
type Packet struct {
	// Pong is the number of an answer to a ping; 0 for other packets.
	Pong uint64
	// Topic is empty for other packets than messages.
	Topic    string
	Payload  []byte
	Retained bool
	// Reserved is the size that was reserved for a large message.
	Reserved int
	// ID is that of Subscribe, and Refused has an item for each of its filters.
	ID      uint16
	Refused []bool
}

// Read returns the next packet. The payload is not used again.
func (c *Connection) Read() (Packet, error) {
	for {
		kind, body, skipped, err := c.read()
		switch {
		case err != nil:
			return Packet{}, err
		case skipped:
			c.options.Skipped()
			continue
		}
		switch kind >> 4 {
		case packets.Publish:
			packet, err := parsePublish(kind, body)
			if packet.Reserved = c.reserved; c.reserved == 0 {
				packet.Payload = bytes.Clone(packet.Payload) // the buffer is used again
			}
			return packet, err
		case packets.Suback:
			if len(body) < 3 {
				return Packet{}, errProtocol
			}
			packet := Packet{ID: uint16(body[0])<<8 | uint16(body[1]), Refused: make([]bool, len(body)-2)}
			for i, code := range body[2:] {
				packet.Refused[i] = code > 2
			}
			return packet, nil
		case packets.Pingresp:
			c.pongs++
			return Packet{Pong: c.pongs}, nil
		case packets.Unsuback:
		default:
			return Packet{}, errProtocol
		}
	}
}

// errProtocol is an answer that MQTT does not permit.
var errProtocol = errors.New("the broker violates MQTT 3.1.1")

// parsePublish parses a message. A broker must not send messages with a higher quality of
// service than the subscription's, which is 0.
func parsePublish(kind byte, body []byte) (Packet, error) {
	if kind&0x06 != 0 || len(body) < 2 {
		return Packet{}, errProtocol
	}
	length := int(body[0])<<8 | int(body[1])
	if len(body) < 2+length {
		return Packet{}, errProtocol
	}
	topic := string(body[2 : 2+length])
	if topic == "" || !utf8.ValidString(topic) || strings.ContainsAny(topic, "+#\x00") {
		return Packet{}, errProtocol
	}
	return Packet{Topic: topic, Payload: body[2+length:], Retained: kind&1 != 0}, nil
}

// read returns a packet's first byte and its content. That of a small packet is valid until
// the next call.
// A PUBLISH that is too large is skipped.
func (c *Connection) read() (kind byte, body []byte, skipped bool, err error) {
	if kind, err = c.reader.ReadByte(); err != nil {
		return 0, nil, false, err
	}
	length, err := c.length()
	if err != nil {
		return 0, nil, false, err
	}
	switch {
	case kind>>4 == packets.Publish && length > c.options.MaxPayload+maxTopicOverhead:
		_, err := io.CopyN(io.Discard, c.reader, int64(length))
		return kind, nil, true, err
	case kind>>4 != packets.Publish && length > maxControlPacket:
		return 0, nil, false, errProtocol
	}
	if c.reserved = 0; length > SmallBytes {
		if err := c.options.Reserve(length); err != nil {
			return 0, nil, false, err
		}
		c.reserved, body = length, make([]byte, length)
	} else {
		if c.buffer == nil {
			c.buffer = make([]byte, SmallBytes)
		}
		body = c.buffer[:length]
	}
	_, err = io.ReadFull(c.reader, body)
	return kind, body, false, err
}

// length reads the remaining length of a packet, which has up to four bytes.
func (c *Connection) length() (int, error) {
	length := 0
	for shift := 0; shift < 28; shift += 7 {
		b, err := c.reader.ReadByte()
		if err != nil {
			return 0, err
		}
		if length |= int(b&0x7f) << shift; b&0x80 == 0 {
			return length, nil
		}
	}
	return 0, errProtocol
}
