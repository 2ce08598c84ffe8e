package onvif

import (
	"fmt"
	"testing"

	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// TestIDByUUID has a device with two addresses: an old one and a new one, or both for good. A
// lost answer must not change its properties.
func TestIDByUUID(t *testing.T) {
	b := newBench(t, "id: uuid")
	at := func(what string, n int) {
		t.Helper()
		devices := b.devices()
		if want := fmt.Sprintf("http://10.0.0.%d/onvif/device_service", n); len(devices) != 1 || devices[0].ID != "uuid-1" ||
			devices[0].Properties[PropertyServiceURL] != want {
			t.Errorf("%s: got %v, want %s", what, devices, want)
		}
	}
	round := func(numbers ...int) {
		for _, n := range numbers {
			from, announcement := cameraNumber(wsdiscovery.Match, n)
			announcement.UUID = "uuid-1"
			b.announced(b.now, from, announcement)
		}
		b.works(1, 2)
		b.window()
	}
	round(1)
	round(1, 2)
	at("with both addresses", 1)
	round(2)
	round(2)
	at("after two lost answers", 1)
	round(1, 2)
	for range 2 * b.settings.Misses { // an answer to a request counts too
		round(2)
	}
	at("after many lost answers", 2)
	for range 3 {
		round(1, 2)
		at("at both again", 2)
	}
	for range 20 {
		round()
		at("at none, while requests are answered", 2)
	}
}

// TestCameraGetsAnotherAddress checks that its new address is used at once.
func TestCameraGetsAnotherAddress(t *testing.T) {
	for _, text := range []string{"id: uuid", "id: url"} {
		b := newBench(t, text)
		b.hears(wsdiscovery.Match, 1)
		b.works(1)
		b.window()
		from, announcement := cameraNumber(wsdiscovery.Hello, 2)
		announcement.UUID = "uuid-1"
		b.announced(b.now, from, announcement)
		b.works(2)
		devices := b.devices()
		if len(devices) != 1 || devices[0].Properties[PropertyIPAddress] != "10.0.0.2" {
			t.Errorf("%s: got %v, want the camera at its new address", text, devices)
		}
	}
}
