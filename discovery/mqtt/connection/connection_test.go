package connection

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a connection whose other side has already sent everything.
type script struct {
	net.Conn
	io.Reader
}

func (s script) Read(p []byte) (int, error)      { return s.Reader.Read(p) }
func (s script) SetReadDeadline(time.Time) error { return nil }

// testMaxPayload is MaxPayload in the tests.
const testMaxPayload = 1000

// reading returns a connection that reads these bytes.
func reading(data []byte, skipped func(string)) *Connection {
	conn := script{Reader: bytes.NewReader(data)}
	options := Options{MaxPayload: testMaxPayload, Skipped: skipped}
	return &Connection{options: options, net: conn, reader: newReader(conn)}
}

// encode encodes packets with paho.
func encode(t testing.TB, all ...packets.ControlPacket) []byte {
	t.Helper()
	var data bytes.Buffer
	for _, packet := range all {
		if err := packet.Write(&data); err != nil {
			t.Fatal(err)
		}
	}
	return data.Bytes()
}

func publish(topic, payload string, retained bool, qos byte) packets.ControlPacket {
	packet, _ := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	packet.TopicName, packet.Payload, packet.Retain, packet.Qos, packet.MessageID = topic, []byte(payload), retained, qos, 1
	return packet
}

// message reads a message.
func message(t testing.TB, c *Connection) *packets.PublishPacket {
	t.Helper()
	packet, err := c.Read()
	found, ok := packet.(*packets.PublishPacket)
	if !ok {
		t.Fatalf("read %+v, %v", packet, err)
	}
	return found
}

func TestRead(t *testing.T) {
	suback, _ := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
	suback.MessageID, suback.ReturnCodes = 0x1234, []byte{0, 0x80}
	skipped := 0
	c := reading(encode(t, publish("a/b", "x", true, 0), packets.NewControlPacket(packets.Pingresp),
		publish("big", strings.Repeat("x", testMaxPayload+1), true, 0), suback,
		publish("ü", "", false, 0)), func(string) { skipped++ })
	first := message(t, c)
	if first.TopicName != "a/b" || string(first.Payload) != "x" || !first.Retain {
		t.Fatalf("read %+v", first)
	}
	if pong, err := c.Read(); err != nil || pong.String() != packets.NewControlPacket(packets.Pingresp).String() {
		t.Fatalf("read %+v, %v", pong, err)
	}
	second, err := c.Read()
	ack, ok := second.(*packets.SubackPacket)
	if !ok || ack.MessageID != 0x1234 || !bytes.Equal(ack.ReturnCodes, []byte{0, 0x80}) || skipped != 1 {
		t.Fatalf("read %+v, %v, and skipped %d messages; want an acknowledgement, and one", second, err, skipped)
	}
	if third := message(t, c); third.TopicName != "ü" || third.Retain || string(first.Payload) != "x" {
		t.Fatalf("read %+v", third)
	}
	if _, err := c.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// TestSlowPacket has a retained message that is skipped, and takes longer than the broker may
// send nothing.
func TestSlowPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, broker := net.Pipe()
		var sending sync.WaitGroup
		defer sending.Wait()
		defer client.Close()
		defer broker.Close()
		skipped := 0
		options := Options{MaxPayload: testMaxPayload, Skipped: func(string) { skipped++ }}
		c := &Connection{options: options, net: client, reader: newReader(client)}
		large, small := encode(t, publish("big", strings.Repeat("x", 1<<20), true, 0)), encode(t, publish("a", "x", true, 0))
		sending.Go(func() {
			for rest := large; len(rest) > 0; {
				part := min(len(rest), 1<<16)
				_, _ = broker.Write(rest[:part]) // the test fails without
				rest = rest[part:]
				time.Sleep(readTimeout - time.Second) // it is the broker that is slow
			}
			_, _ = broker.Write(small)
		})
		if packet := message(t, c); packet.TopicName != "a" || skipped != 1 {
			t.Errorf("read %+v, and skipped %d messages; want the message after it", packet, skipped)
		}
		began := time.Now()
		if packet, err := c.Read(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != readTimeout {
			t.Errorf("read %+v, %v after %v of silence", packet, err, time.Since(began))
		}
	})
}

func TestViolations(t *testing.T) {
	for name, data := range map[string][]byte{
		"QoS 1":                       encode(t, publish("a", "x", false, 1)),
		"a wildcard":                  encode(t, publish("a/+", "x", false, 0)),
		"no topic":                    {0x30, 2, 0, 0},
		"a topic beyond the end":      {0x30, 3, 0, 9, 'a'},
		"NUL in a topic":              {0x30, 3, 0, 1, 0},
		"an empty PUBLISH":            {0x30, 0},
		"an endless length":           {0x30, 0xff, 0xff, 0xff, 0xff, 0x01},
		"a huge acknowledgement":      {0x90, 0xff, 0xff, 0xff, 0x7f},
		"a packet of clients":         {0x82, 3, 0, 1, 0},
		"an unknown packet":           {0xf0, 0},
		"an acknowledgement of QoS 1": {0x40, 2, 0, 1},
	} {
		if packet, err := reading(data, func(string) {}).Read(); !errors.Is(err, errProtocol) {
			t.Errorf("%s: read %+v, %v", name, packet, err)
		}
	}
}

// FuzzRead checks that whatever a broker sends is bounded and valid.
func FuzzRead(f *testing.F) {
	f.Add(encode(f, publish("a/b", "x", true, 0), publish("b", "", false, 0)))
	f.Add([]byte{0x90, 4, 0, 1, 0, 0x80, 0xd0, 0, 0xb0, 2, 0, 1})
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0x7f, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := reading(data, func(string) {})
		for {
			packet, err := c.Read()
			if err != nil {
				return
			}
			if p, ok := packet.(*packets.PublishPacket); ok &&
				(p.TopicName == "" || strings.ContainsAny(p.TopicName, "+#\x00") || len(p.Payload) > testMaxPayload) {
				t.Fatalf("read %+v", packet)
			}
		}
	})
}

func TestDialFails(t *testing.T) {
	for name, tc := range map[string]struct {
		answer []byte
		want   string
	}{
		"a bad password":  {[]byte{0x20, 2, 0, 4}, "refuses the user name or the password: check the discoveryProperties"},
		"not authorized":  {[]byte{0x20, 2, 0, 5}, "refuses the client"},
		"an unknown code": {[]byte{0x20, 2, 0, 99}, "refuses the connection with code 99"},
		"a web server":    {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "not MQTT: check the port"},
		"another packet":  {[]byte{0xd0, 0}, "not MQTT: check the port"},
		"no answer":       {nil, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if tc.answer == nil {
				limit = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			address := handlertest.Listen(t, "127.0.0.1:0", func(conn net.Conn) {
				_, _ = conn.Write(tc.answer)     // the client may be gone
				_, _ = io.Copy(io.Discard, conn) // until the client closes the connection
			})
			c, err := Dial(ctx, Options{Address: address, ClientID: "c", Username: "me", Password: "secret", MaxPayload: 1})
			if err == nil {
				c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
