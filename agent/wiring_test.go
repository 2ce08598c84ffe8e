package agent_test

import (
	"strings"
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
)

// A failure that the publisher finds has the handler's name, because the handler must
// change what it reports.
func TestRefusedDevicesNameTheHandler(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	send := a.startScripted("large", 1)
	send(discovery.Device{ID: "meter", Properties: map[string]string{"VALUE": strings.Repeat("x", v0.MaxPropertiesLength+1)}})
	w.eventually("the device is refused", func() bool { return len(w.failures("large")) > 0 })
	if found := w.failures("large"); len(found) != 1 || found[0].Handler != "large" || found[0].Node != a.name ||
		!strings.Contains(found[0].Message, "meter") {
		t.Errorf("the failures are %+v, want one of the handler large on %s about its device", found, a.name)
	}
}
