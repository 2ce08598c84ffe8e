package streams

import (
	"testing"
	"time"
)

// Devices are kept for the grace period after the last list, which does not begin again when
// an endpoint is gone.
func TestGraceOfDevicesThatAListLacks(t *testing.T) {
	s := &timeline{view: newView(time.Unix(0, 0)), now: time.Unix(0, 0)}
	s.view.grace = time.Minute
	s.at(10)
	s.expect(usb).opened(usb).received(usb, "a").at(20).received(usb).at(50).broke(usb)
	if got := s.view.At(time.Unix(1000, 0)).Grace.Unix(); got != 80 {
		t.Errorf("devices are kept until %d, want 80", got)
	}
}
