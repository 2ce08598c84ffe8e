package discovery

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// A device whose firmware has a name in another encoding does not end the stream.
func TestTextsThatAreNotUTF8(t *testing.T) {
	message := responseFrom([]Device{
		{ID: "caf\xe9", Properties: map[string]string{"NAME": "caf\xe9", "OTHER": "café"}},
	})
	if _, err := proto.Marshal(message); err != nil {
		t.Fatal(err)
	}
	device := message.GetDevices()[0]
	if device.GetId() != "caf\ufffd" || device.GetProperties()["NAME"] != "caf\ufffd" || device.GetProperties()["OTHER"] != "café" {
		t.Errorf("sent %v", device)
	}
}
