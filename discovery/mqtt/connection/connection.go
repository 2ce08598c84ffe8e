package connection

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

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
	// maxPeek bounds what is read of the topic of a message that is skipped.
	maxPeek = 1024
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
	// Skipped is called for each message that is skipped, with its topic.
	Skipped func(topic string)
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
	nextID  uint16
}

// Dial connects to a broker.
func Dial(ctx context.Context, options Options) (*Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if options.TLS != nil {
		dial = (&tls.Dialer{Config: options.TLS}).DialContext
	}
	conn, err := dial(ctx, "tcp", options.Address)
	if err != nil {
		return nil, err
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
func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReader(patient{conn}) }

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
	answer, err := c.read()
	if err != nil {
		return err
	}
	switch accepted, ok := answer.(*packets.ConnackPacket); {
	case !ok:
		return errOther
	case accepted.ReturnCode != packets.Accepted:
		return &RefusedError{Code: accepted.ReturnCode}
	}
	return nil
}

// Close closes the connection. It says goodbye if that does not block.
func (c *Connection) Close() {
	_ = c.net.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // the broker may be gone
	_ = packets.NewControlPacket(packets.Disconnect).Write(c.net)
	c.net.Close()
}

// Ping makes the broker answer.
func (c *Connection) Ping() error { return c.write(packets.NewControlPacket(packets.Pingreq)) }

// Publish sends a message.
func (c *Connection) Publish(topic string, payload []byte) error {
	packet, _ := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	packet.TopicName, packet.Payload = topic, payload
	return c.write(packet)
}

// Subscribe subscribes to filters. The returned id is that of the acknowledgement.
func (c *Connection) Subscribe(filters []string) (id uint16, err error) {
	packet, _ := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	c.nextID = max(1, c.nextID+1) // never 0
	packet.MessageID, packet.Topics, packet.Qoss = c.nextID, filters, make([]byte, len(filters))
	return packet.MessageID, c.write(packet)
}

func (c *Connection) write(packet packets.ControlPacket) error {
	if err := c.net.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return packet.Write(c.net)
}

// Read returns the next packet that matters: a message, or the acknowledgement of a
// subscription or of a ping. Not every broker checks that topics are valid UTF-8.
func (c *Connection) Read() (packets.ControlPacket, error) {
	for {
		packet, err := c.read()
		if err != nil {
			return nil, err
		}
		switch p := packet.(type) {
		case nil:
		case *packets.PublishPacket:
			// A broker must not send a higher quality of service than the subscription's, which is 0.
			if p.Qos != 0 || p.TopicName == "" || strings.ContainsAny(p.TopicName, "+#\x00") {
				return nil, errProtocol
			}
			return p, nil
		case *packets.SubackPacket, *packets.PingrespPacket:
			return p, nil
		default:
			return nil, errProtocol
		}
	}
}

// errProtocol is an answer that MQTT does not permit.
var errProtocol = errors.New("the broker violates MQTT 3.1.1")

// read returns a packet; nil for a PUBLISH that is too large, of which only the topic is read.
func (c *Connection) read() (packets.ControlPacket, error) {
	first, err := c.reader.ReadByte()
	if err != nil {
		return nil, err
	}
	length, err := c.length()
	if err != nil {
		return nil, err
	}
	header := packets.FixedHeader{
		MessageType: first >> 4, Qos: first >> 1 & 3, Retain: first&1 != 0, RemainingLength: length,
	}
	switch {
	case header.MessageType == packets.Publish && length > c.options.MaxPayload+maxTopicOverhead:
		if start, err := c.reader.Peek(2); err == nil { // the length of the topic
			start, _ = c.reader.Peek(2 + min(int(binary.BigEndian.Uint16(start)), maxPeek)) // the end is an error below
			c.options.Skipped(strings.ToValidUTF8(string(start[min(2, len(start)):]), ""))
		}
		_, err := io.CopyN(io.Discard, c.reader, int64(length))
		return nil, err
	case header.MessageType != packets.Publish && length > maxControlPacket:
		return nil, errProtocol
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.reader, body); err != nil {
		return nil, err
	}
	packet, err := packets.NewControlPacketWithHeader(header)
	if err != nil || packet.Unpack(bytes.NewBuffer(body)) != nil {
		return nil, errProtocol
	}
	if message, ok := packet.(*packets.PublishPacket); ok && len(message.Payload) > c.options.MaxPayload {
		c.options.Skipped(message.TopicName)
		return nil, nil
	}
	return packet, nil
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
