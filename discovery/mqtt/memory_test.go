package mqtt

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/internal/fulltest"
)

// hostileBroker accepts every connection, and then sends what a test chooses, again and
// again, without regard to what the client has subscribed to.
type hostileBroker struct {
	net.Listener
	// next returns the topic of a connection's message and the beginning of its payload,
	// and rest is the rest.
	next func(number int) (topic, payload string)
	rest []byte
}

func startHostileBroker(t *testing.T, next func(number int) (topic, payload string), rest string) *hostileBroker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &hostileBroker{listener, next, []byte(rest)}
	go b.accept()
	t.Cleanup(func() { listener.Close() })
	return b
}

func (b *hostileBroker) url() string { return "tcp://" + b.Addr().String() }

func (b *hostileBroker) accept() {
	for {
		conn, err := b.Accept()
		if err != nil {
			return
		}
		go b.serve(conn)
	}
}

// serve sends messages until the connection is closed.
func (b *hostileBroker) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	if _, err := packets.ReadPacket(reader); err != nil {
		return
	}
	go io.Copy(io.Discard, reader)
	writer := bufio.NewWriterSize(conn, 4<<10)
	if packets.NewControlPacket(packets.Connack).Write(writer) != nil {
		return
	}
	for i := 0; ; i++ {
		topic, payload := b.next(i)
		header := []byte{packets.Publish<<4 | 1}
		for length := 2 + len(topic) + len(payload) + len(b.rest); ; length >>= 7 {
			if length < 1<<7 {
				header = append(header, byte(length), byte(len(topic)>>8), byte(len(topic)))
				break
			}
			header = append(header, byte(length)|1<<7)
		}
		for _, part := range [][]byte{header, []byte(topic), []byte(payload), b.rest} {
			if _, err := writer.Write(part); err != nil {
				return
			}
		}
		if i%100 == 0 && writer.Flush() != nil {
			return
		}
	}
}

// TestHostileBrokers checks that brokers of many Configurations that send as much as they
// can leave memory for those of others.
func TestHostileBrokers(t *testing.T) {
	long := strings.Repeat("x", 1000)
	paths := strings.Repeat("['"+strings.Repeat("y", 3000)+"']", 60)
	for _, test := range []struct {
		name, convention string
		next             func(number int) (topic, payload string)
		rest             string
		full             bool
	}{
		{"many topics", "homie", func(i int) (string, string) {
			return fmt.Sprintf("homie/device%d/$name", i), ""
		}, long, false},
		{"short topics", "homie", func(i int) (string, string) { return fmt.Sprintf("homie/%d/$name", i), "x" }, "", true},
		{"long templates", "homeAssistant", func(i int) (string, string) {
			return fmt.Sprintf("homeassistant/sensor/%d/config", i), fmt.Sprintf(
				`{"name":"a","unique_id":"u%d","availability":{"topic":"a%d","value_template":"{{ value_json`, i, i)
		}, paths + ` }}"}}`, false},
		{"long modes", "homeAssistant", func(i int) (string, string) {
			return fmt.Sprintf("homeassistant/sensor/%d/config", i), fmt.Sprintf(
				`{"name":"a","unique_id":"u%d","availability_mode":"`, i)
		}, strings.Repeat("x", 200_000) + `"}`, false},
		{"long lists", "zigbee2mqtt", func(i int) (string, string) {
			return "zigbee2mqtt/bridge/devices", fmt.Sprintf(`[{"ieee_address":"a%d","friendly_name":"a"}`, i)
		}, strings.Repeat(fmt.Sprintf(`,{"ieee_address":"b","friendly_name":"c","model_id":%q}`, long), 3500) + "]", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.full {
				fulltest.Only(t)
			}
			hostile := startHostileBroker(t, test.next, test.rest)
			b := startBroker(t, "127.0.0.1:0", nil, nil)
			for i := range 10 {
				announce(t, b, fmt.Sprintf("own%d", i))
			}
			crowd := handlertest.Crowd{
				Handler: Handler{}, Devices: 10, MaxHeap: 64 << 20, Refused: 35,
				Modest: discovery.Request{Details: fmt.Sprintf("broker: {url: %q}\nconvention: homie\n", b.url())},
			}
			for range 30 {
				crowd.Hostile = append(crowd.Hostile, discovery.Request{
					Details: fmt.Sprintf("broker: {url: %q}\nconvention: %s\n", hostile.url(), test.convention),
				})
			}
			crowd.Run(t)
		})
	}
}
