package onvif

import (
	"net/netip"
	"testing"
	"time"
)

// TestOneHostSendsVeryMany has a host that sends as fast as it can, before others send a
// message each.
func TestOneHostSendsVeryMany(t *testing.T) {
	rogue, honest := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for name, size := range map[string]int{"small messages": 600, "large messages": maxMessageBytes} {
		t.Run(name, func(t *testing.T) {
			i := &inflow{}
			now, bytes, lost := epoch, 0, 0
			for range 100 { // ten seconds, in three periods
				for range 2000 {
					if i.admits(now, rogue, size) {
						bytes += size
					}
				}
				if !i.admits(now, honest, 1500) {
					lost++
				}
				now = now.Add(100 * time.Millisecond)
			}
			if lost > 0 {
				t.Errorf("%d of 100 messages of another host were dropped", lost)
			}
			if limit := 3 * maxMessagesPerHost * countedBytes; bytes > limit {
				t.Errorf("%d bytes are read, want at most %d", bytes, limit)
			}
		})
	}
}

// TestManyCamerasAnswerAtOnce has all cameras that are remembered, with four answers each.
func TestManyCamerasAnswerAtOnce(t *testing.T) {
	i := &inflow{}
	for n := range maxCameras {
		from, _ := cameraNumber(0, n)
		for range 4 {
			if !i.admits(epoch, from, 1500) {
				t.Fatalf("an answer of camera %d is dropped", n)
			}
		}
	}
}
