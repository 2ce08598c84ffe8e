package follow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mqtt/convention"
)

// live sends a message that is not retained.
func (s *simulation) live(topic string) {
	s.follower.Message(convention.Message{Topic: topic}, false, s.now)
	s.settle()
}

// TestRebirthIsOverdue has an edge node that dies while the broker is away, and so does not
// answer a command. Nothing else is due when that is noticed.
func TestRebirthIsOverdue(t *testing.T) {
	s := simulate(t, "convention: sparkplug\nrebirth: true")
	s.connect()
	s.advance(quietTime)
	s.live("spBv1.0/plant/NBIRTH/gw")
	s.advance(time.Second)
	s.expect("the node is born", "plant/gw")
	s.disconnect()
	s.connect()
	const wait = time.Minute // as the handler's page says
	s.advance(wait - time.Second)
	s.expect("the node may still answer", "plant/gw")
	s.advance(time.Second + settleTime)
	s.expect("the node has not answered")
}

// TestLiveMessages checks that only retained messages belong to a list.
func TestLiveMessages(t *testing.T) {
	s := simulate(t, "convention: sparkplug\nrebirth: true")
	s.connect()
	for range 4 {
		s.advance(quietTime / 4)
		s.live("spBv1.0/plant/NDATA/gw")
	}
	if s.scans != 1 {
		t.Errorf("%d lists, want one although messages arrive", s.scans)
	}
}

// TestCertificatesAreRefused has a broker that does not know about Sparkplug.
func TestCertificatesAreRefused(t *testing.T) {
	s := simulate(t, "convention: sparkplug")
	s.refuse = func(filter string) bool { return strings.HasPrefix(filter, "$") }
	s.connect()
	s.advance(quietTime)
	s.expect("the rest is permitted")
	if s.failures[SubscriptionRefused] != 0 || len(s.needed) > 0 {
		t.Errorf("failures %v, needed %q", s.failures, s.needed)
	}
}

// TestListBytes checks that a list fits into what agents accept, and that what does not fit is
// counted.
func TestListBytes(t *testing.T) {
	s := simulate(t, "convention: topics\ntopics: {announce: a/+, id: $1, properties: {A: payload, B: payload, C: payload}}")
	const devices = maxListBytes / 1600
	for i := range devices {
		s.retained[fmt.Sprintf("a/%04d", i)] = strings.Repeat("x", 510)
	}
	s.connect()
	s.advance(quietTime)
	s.publish("a/0000", "y")
	s.advance(pace)
	last := s.lists[len(s.lists)-1]
	if len(s.lists) != 2 || len(last) > devices-10 || len(last) < devices/2 || s.failures[TooManyDevices] == 0 {
		t.Errorf("%d lists, the last with %d of %d devices, and failures %v", len(s.lists), len(last), devices, s.failures)
	}
}

// TestRebirthIsLate has an edge node that connects to a restarted broker later than the handler.
func TestRebirthIsLate(t *testing.T) {
	s := simulate(t, "convention: sparkplug\nrebirth: true")
	s.connect()
	s.advance(quietTime)
	s.live("spBv1.0/plant/NBIRTH/gw")
	s.advance(time.Second)
	s.disconnect()
	s.connect()
	s.advance(resumeTime - time.Second)
	s.live("spBv1.0/plant/NBIRTH/gw")
	s.advance(time.Hour)
	if s.expect("the node is back", "plant/gw"); len(s.lists) != 2 {
		t.Errorf("the lists are %q, want one without and one with the node", s.lists)
	}
}
