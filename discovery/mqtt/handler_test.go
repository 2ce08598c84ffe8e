package mqtt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) {
	// The broker of the tests does not wait for its own goroutine when it is closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mochi-mqtt/server/v2.(*Server).eventLoop"))
}

// deadline bounds waits in tests. No test passes by reaching it.
const deadline = time.Minute

// call is a running call of Discover.
type call struct {
	t        testing.TB
	lists    chan []discovery.Device
	ended    chan error
	cancel   context.CancelFunc
	last     []discovery.Device
	history  [][]string
	registry *prometheus.Registry
}

// discover calls Discover until the test ends.
func discover(t testing.TB, handler Handler, details string, properties map[string]string) *call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{
		t: t, lists: make(chan []discovery.Device, 1000), ended: make(chan error, 1), cancel: cancel, registry: prometheus.NewRegistry(),
	}
	handler.Metrics = monitor.New(c.registry)
	request := discovery.Request{Details: details, Properties: map[string][]byte{}}
	for name, value := range properties {
		request.Properties[name] = []byte(value)
	}
	go func() {
		c.ended <- handler.Discover(ctx, request, func(devices []discovery.Device) error {
			c.lists <- devices
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-c.ended:
		case <-time.After(deadline):
			t.Error("Discover does not return when its context ends")
		}
	})
	return c
}

// await waits for a list with exactly these ids, and returns it.
func (c *call) await(ids ...string) []discovery.Device {
	c.t.Helper()
	slices.Sort(ids)
	c.awaitList(fmt.Sprintf("the devices %q", ids), func(got []string) bool { return slices.Equal(got, ids) })
	return c.last
}

func (c *call) awaitList(what string, accept func(ids []string) bool) {
	c.t.Helper()
	timeout := time.After(deadline)
	for {
		select {
		case c.last = <-c.lists:
			ids := []string{}
			for _, device := range c.last {
				ids = append(ids, device.ID)
			}
			c.history = append(c.history, ids)
			if accept(ids) {
				return
			}
		case err := <-c.ended:
			c.ended <- err
			c.t.Fatalf("Discover returned %v before a list had %s; the lists were %q", err, what, c.history)
		case <-timeout:
			c.t.Fatalf("no list had %s; the lists were %q", what, c.history)
		}
	}
}

// unchanged fails if a list was sent since the last one that was read.
func (c *call) unchanged(why string) {
	c.t.Helper()
	select {
	case list := <-c.lists:
		c.t.Errorf("%s: a list of %d devices was sent, after %d", why, len(list), len(c.last))
	default:
	}
}

// failed returns how often a failure was counted.
func (c *call) failed(reason string) float64 {
	c.t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "akri_handler_failures_total" && metric.GetLabel()[0].GetValue() == reason {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func homieDetails(url string) string {
	return fmt.Sprintf("broker: {url: %q}\nconvention: homie\n", url)
}

func announce(t testing.TB, d interface {
	retain(testing.TB, string, string)
}, id string) {
	t.Helper()
	d.retain(t, "homie/"+id+"/$homie", "4.0.0")
	d.retain(t, "homie/"+id+"/$name", "Device "+id)
	d.retain(t, "homie/"+id+"/$state", "ready")
}

func TestDevices(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0", nil, nil)
	c := discover(t, Handler{}, homieDetails(b.url()), nil)
	c.await() // the first list, although it is empty
	d := connectDevice(t, b.address, "homie/pump/$state", "lost")
	announce(t, d, "pump")
	announce(t, b, "lamp")
	devices := c.await("lamp", "pump")
	want := map[string]string{
		"MQTT_BROKER_URL": b.url(), "MQTT_BASE_TOPIC": "homie/pump", "MQTT_DEVICE_ID": "pump", "MQTT_DEVICE_NAME": "Device pump",
		"AKRI_DISPLAY_NAME": "Device pump",
	}
	if got := devices[1].Properties; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the properties are %q, want %q", got, want)
	}
	d.die()
	c.await("lamp")
	b.retain(t, "homie/lamp/$state", "")
	c.await()
}

func TestBrokerRestarts(t *testing.T) {
	for name, reannounce := range map[string]bool{"devices connect again": true, "the broker has lost the devices for a moment": false} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, "127.0.0.1:0", nil, nil)
			announce(t, b, "pump")
			announce(t, b, "lamp")
			c := discover(t, Handler{}, homieDetails(b.url()), nil)
			c.await("lamp", "pump")
			b.stop()
			b = startBroker(t, b.address, nil, nil)
			if reannounce {
				announce(t, b, "lamp")
			}
			b.retain(t, "homie/pump/$homie", "4.0.0")
			b.retain(t, "homie/pump/$state", "lost") // the device has not connected to the new broker yet
			waitFor(t, "the handler connects again", func() bool { return b.Clients.Len() > 1 })
			announce(t, b, "new")
			c.await("lamp", "new", "pump")
			announce(t, b, "pump")
			b.retain(t, "homie/new/$state", "")
			c.await("lamp", "pump")
			c.unchanged("the broker restarted")
		})
	}
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
	c := discover(t, Handler{Logger: logger}, fmt.Sprintf("broker: {url: %q}\nconvention: zigbee2mqtt", b.url()), nil)
	c.await("0x1")
	b.retain(t, "zigbee2mqtt/bridge/devices", fmt.Sprintf(list, `,{"ieee_address":"0x3","friendly_name":"door"}`))
	c.await("0x1", "0x3")
	for reason, subject := range map[string]string{
		"invalid_topic": "zigbee2mqtt/plug #7", "payload_too_large": "zigbee2mqtt/large/availability",
	} {
		if lines := strings.Count(log.String(), subject); lines != 1 || c.failed(reason) != 1 {
			t.Errorf("%s: %d lines, and %v failures\n%s", subject, lines, c.failed(reason), log.String())
		}
	}
}

func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for began := time.Now(); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > deadline {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func TestUnreachable(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0", nil, nil)
	b.stop()
	c := discover(t, Handler{outage: 300 * time.Millisecond}, homieDetails(b.url()), nil)
	err := <-c.ended
	c.ended <- err
	if err == nil || errors.Is(err, context.Canceled) || len(c.lists) > 0 {
		t.Errorf("got %v and %d lists, want an error and none", err, len(c.lists))
	}
}
