package mqtt

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) {
	// The broker of the tests does not wait for its own goroutine when it is closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mochi-mqtt/server/v2.(*Server).eventLoop"))
}

// discover calls Discover until the test ends.
func discover(t testing.TB, handler Handler, details string, properties map[string]string) *handlertest.Call {
	t.Helper()
	request := discovery.Request{Details: details, Properties: map[string][]byte{}}
	for name, value := range properties {
		request.Properties[name] = []byte(value)
	}
	return handlertest.Open(t, handler, request)
}

func homieDetails(url string) string {
	return fmt.Sprintf("broker: {url: %q}\nconvention: homie\n", url)
}

func announce(t testing.TB, d *localBroker, id string) {
	t.Helper()
	d.retain(t, "homie/"+id+"/$homie", "4.0.0")
	d.retain(t, "homie/"+id+"/$name", "Device "+id)
	d.retain(t, "homie/"+id+"/$state", "ready")
}

func TestDevices(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0", nil, nil)
	c := discover(t, Handler{}, homieDetails(b.url()), nil)
	c.UntilIDs() // the first list, although it is empty
	announce(t, b, "pump")
	announce(t, b, "lamp")
	devices := c.UntilIDs("lamp", "pump")
	want := map[string]string{
		"MQTT_BROKER_URL": b.url(), "MQTT_BASE_TOPIC": "homie/pump", "MQTT_DEVICE_ID": "pump", "MQTT_DEVICE_NAME": "Device pump",
		"AKRI_DISPLAY_NAME": "Device pump",
	}
	if got := devices[1].Properties; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the properties are %q, want %q", got, want)
	}
	b.retain(t, "homie/pump/$state", "lost") // as its last will says
	c.UntilIDs("lamp")
	b.retain(t, "homie/lamp/$state", "")
	c.UntilIDs()
}

// TestBrokerRestarts has a broker that loses what it has retained. No device goes for that reason.
func TestBrokerRestarts(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0", nil, nil)
	announce(t, b, "pump")
	announce(t, b, "lamp")
	c := discover(t, Handler{}, homieDetails(b.url()), nil)
	c.UntilIDs("lamp", "pump")
	b.stop()
	b = startBroker(t, b.address, nil, nil)
	b.retain(t, "homie/pump/$homie", "4.0.0")
	b.retain(t, "homie/pump/$state", "lost") // the device has not connected to the new broker yet
	handlertest.Await(t, "the handler connects again", func() bool { return b.Clients.Len() > 1 })
	announce(t, b, "new")
	c.UntilIDs("lamp", "new", "pump")
	announce(t, b, "pump")
	b.retain(t, "homie/new/$state", "")
	c.UntilIDs("lamp", "pump")
	c.Quiet()
}

// TestLeftOut checks that what is left out is counted and in the log, once, with its name.
func TestLeftOut(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0", nil, nil)
	const list = `[{"ieee_address":"0x1","friendly_name":"lamp"},{"ieee_address":"0x2","friendly_name":"plug #7"}%s]`
	b.retain(t, "zigbee2mqtt/bridge/state", "online")
	b.retain(t, "zigbee2mqtt/bridge/devices", fmt.Sprintf(list, ""))
	b.retain(t, "zigbee2mqtt/large/availability", strings.Repeat("x", 5<<20))
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	registry := prometheus.NewRegistry()
	handler := Handler{Logger: logger, Metrics: monitor.New(registry)}
	c := discover(t, handler, fmt.Sprintf("broker: {url: %q}\nconvention: zigbee2mqtt", b.url()), nil)
	c.UntilIDs("0x1")
	b.retain(t, "zigbee2mqtt/bridge/devices", fmt.Sprintf(list, `,{"ieee_address":"0x3","friendly_name":"door"}`))
	c.UntilIDs("0x1", "0x3")
	for reason, subject := range map[string]string{
		"invalid_topic": "zigbee2mqtt/plug #7", "payload_too_large": "zigbee2mqtt/large/availability",
	} {
		lines, failures := strings.Count(log.String(), subject), handlertest.Failures(t, registry)[reason]
		if lines != 1 || failures != 1 {
			t.Errorf("%s: %d lines, and %v failures\n%s", subject, lines, failures, log.String())
		}
	}
}
