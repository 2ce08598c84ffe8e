package mqtt

import (
	"fmt"
	"os"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const (
	// retainedTopics is the number of retained topics of TestManyRetained.
	retainedTopics = 20_000
	// brokerVariable is the URL of a broker for TestManyRetained, in addition to the one in
	// this process. Everybody may read and write everything there.
	brokerVariable = "AKRI_TEST_MQTT_BROKER"
)

// TestManyRetained checks that a list of many retained topics is complete, and how long it
// takes. The topics are those of 1900 devices with an availability each, and of their
// entities.
func TestManyRetained(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0", nil, nil)
	t.Run("mochi", func(t *testing.T) {
		receive(t, b.url(), func(topic, payload string) { b.retain(t, topic, payload) })
	})
	url := os.Getenv(brokerVariable)
	if url == "" {
		return
	}
	t.Run("broker", func(t *testing.T) {
		client := paho.NewClient(paho.NewClientOptions().AddBroker(url).SetClientID("fill"))
		if token := client.Connect(); token.Wait() && token.Error() != nil {
			t.Fatal(token.Error())
		}
		defer client.Disconnect(250)
		receive(t, url, func(topic, payload string) { client.Publish(topic, 1, true, payload).Wait() })
	})
}

func receive(t *testing.T, url string, retain func(topic, payload string)) {
	const devices = 1900
	for i := range devices {
		retain(fmt.Sprintf("device/%d/status", i), "online")
	}
	for i := range retainedTopics - devices {
		device := i % devices
		retain(fmt.Sprintf("homeassistant/sensor/device%d/entity%d/config", device, i), fmt.Sprintf(
			`{"name":"Entity %d","unique_id":"u%d","state_topic":"device/%d/state","availability_topic":"device/%d/status",`+
				`"device":{"identifiers":["device-%04d"],"name":"Device %d","manufacturer":"Acme","model":"Sensor"}}`,
			i, i, device, device, device, device))
	}
	began := time.Now()
	c := discover(t, Handler{}, fmt.Sprintf("broker: {url: %q}\nconvention: homeAssistant\n", url), nil)
	c.awaitList("the first list", func([]string) bool { return true })
	t.Logf("%d topics, %d devices: the first list after %v", retainedTopics, len(c.last), time.Since(began))
	if len(c.last) != devices {
		t.Errorf("the first list has %d devices, want %d", len(c.last), devices)
	}
}
