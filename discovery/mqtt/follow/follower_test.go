package follow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mqtt/convention"
)

func TestFirstList(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.connect()
	s.advance(quietTime)
	s.expect("the broker has no devices")
	s = simulate(t, "convention: homie")
	s.retained = map[string]string{"homie/a/$homie": "4", "homie/a/$state": "ready", "homie/b/$homie": "4", "homie/b/$state": "lost"}
	s.connect()
	s.advance(quietTime)
	s.expect("a device that is lost before the first list is not in it", "a")
	if len(s.lists) != 1 || s.scans != 1 || len(s.failures) != 0 {
		t.Errorf("%d lists, %d scans, failures %v; want one list", len(s.lists), s.scans, s.failures)
	}
}

func TestNamedTopics(t *testing.T) {
	s := simulate(t, "convention: homeAssistant")
	for i := range 250 {
		s.retained[fmt.Sprintf("homeassistant/sensor/s%03d/config", i)] = fmt.Sprintf(`{"avty_t":"state/%d","dev":{"ids":"d%03d"}}`, i, i)
		s.retained[fmt.Sprintf("state/%d", i)] = "online"
	}
	s.connect()
	s.advance(quietTime)
	if len(s.lists) != 0 {
		t.Fatal("a list was sent before the states of the devices were known")
	}
	s.advance(gather)
	if len(s.lists) != 1 || len(s.lists[0]) != 250 {
		t.Fatalf("%d lists, want one with 250 devices", len(s.lists))
	}
	s.publish("homeassistant/sensor/s000/config", "")
	s.publish("homeassistant/sensor/new/config", `{"avty_t":"state/new","dev":{"ids":"new"}}`)
	s.advance(pace)
	if !s.subscriptions["state/new"] {
		t.Error("the topic of a new device is not subscribed to")
	}
	s.publish("state/new", "online")
	s.advance(pace)
	if last := s.lists[len(s.lists)-1]; !slices.Contains(last, "new") || slices.Contains(last, "d000") || len(last) != 250 {
		t.Errorf("the last list has %d devices, want d001 to d249 and new", len(last))
	}
}

// A broker that sends may not read, so what it is asked in between waits.
func TestNamedTopicsWait(t *testing.T) {
	s := simulate(t, "convention: homeAssistant")
	s.connect()
	asked := s.requests
	for i := range 100 {
		payload := fmt.Sprintf(`{"avty_t":"state/%d","dev":{"ids":"d%d"}}`, i, i)
		s.follower.Message(convention.Message{Topic: fmt.Sprintf("homeassistant/sensor/s%d/config", i), Payload: []byte(payload)}, true, s.now)
		s.advance(gather / 2)
	}
	if s.requests != asked {
		t.Errorf("%d requests while the broker sends", s.requests-asked)
	}
	s.advance(gather)
	if len(s.subscriptions) != 102 {
		t.Errorf("%d subscriptions, want those of 100 devices too", len(s.subscriptions))
	}
}

// The broker may be slow to answer for the topics that devices have named.
func TestNamedTopicsSlowly(t *testing.T) {
	s := simulate(t, "convention: homeAssistant")
	s.retained["homeassistant/sensor/a/config"], s.retained["state/a"] = `{"avty_t":"state/a","dev":{"ids":"a"}}`, "online"
	s.connect()
	s.deaf = true
	s.lose = func(string) bool { return true }
	s.advance(time.Minute)
	if len(s.lists) > 0 {
		t.Fatalf("the lists %q were sent before the broker has answered", s.lists)
	}
	s.follower.Message(convention.Message{Topic: "state/a", Payload: []byte("online")}, true, s.now)
	s.follower.Answered(s.now)
	s.advance(quietTime)
	s.expect("the broker has answered", "a")
}

func TestOffline(t *testing.T) {
	s := simulate(t, "convention: homie\nofflineAfterSeconds: 30")
	s.connect()
	s.advance(quietTime)
	s.device("a", "ready")
	s.device("b", "ready")
	s.advance(time.Second)
	s.device("a", "lost")
	s.advance(29 * time.Second)
	s.expect("within offlineAfterSeconds", "a", "b")
	s.advance(3 * time.Second)
	s.expect("after offlineAfterSeconds", "b")
	s.device("b", "lost")
	s.advance(10 * time.Second)
	s.device("b", "init")
	s.advance(time.Hour)
	s.expect("a device that has connected again", "b")
	s.publish("homie/b/$homie", "")
	s.advance(pace)
	s.expect("an announcement that is removed needs no grace")
	s.device("c", "init")
	s.advance(time.Minute)
	s.expect("a new device that is not ready yet")
}

func TestBrokerAway(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.connect()
	s.advance(quietTime)
	s.device("a", "ready")
	s.device("b", "ready")
	s.advance(time.Second)
	s.expect("two devices", "a", "b")
	sent := len(s.lists)

	s.device("a", "lost") // the broker stops, and sends the last wills
	s.advance(settleTime - 100*time.Millisecond)
	s.disconnect()
	if !s.follower.Next().IsZero() {
		t.Error("something is due without a connection")
	}
	s.advance(time.Hour)
	clear(s.retained)
	s.connect()
	s.advance(30 * time.Second)
	s.device("a", "ready")
	s.device("b", "lost") // the broker knows its last will
	s.advance(29 * time.Second)
	if len(s.lists) != sent {
		t.Errorf("the lists %q were sent because the broker was away", s.lists[sent:])
	}
	s.advance(2 * time.Second)
	s.expect("b did not return to the new broker", "a")
	s.device("b", "ready")
	s.advance(time.Second)
	s.disconnect()
	clear(s.retained)
	s.device("b", "ready")
	s.connect()
	s.advance(quietTime)
	s.device("b", "lost")
	s.advance(settleTime + pace)
	s.expect("b was online on the new connection", "a")
	s.advance(2 * (missInterval + quietTime))
	s.expect("a is missing from three lists")
}

// While a list is being received on a new connection, the state of the former one does not
// count as a sign of life.
func TestStaleState(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.connect()
	s.advance(quietTime)
	s.device("a", "ready")
	s.device("b", "ready")
	s.advance(time.Second)
	sent := len(s.lists)
	s.disconnect()
	s.retained["homie/b/$state"] = "lost"
	s.deaf = true // the list takes some time
	s.lose = func(topic string) bool { return strings.HasPrefix(topic, "homie/b/") }
	s.connect()
	s.publish("homie/a/$name", "A")
	s.advance(5 * time.Second)
	s.device("b", "lost")
	s.follower.Answered(s.now)
	s.advance(resumeTime - 6*time.Second)
	if last := s.lists[len(s.lists)-1]; len(last) != 2 {
		t.Errorf("the lists %q were sent, but b has not had the time to connect again", s.lists[sent:])
	}
	s.advance(10 * time.Second)
	s.expect("b has not connected again", "a")
}

func TestLostMessages(t *testing.T) {
	s := simulate(t, "convention: homie")
	for i := range 100 {
		s.device(fmt.Sprintf("d%03d", i), "ready")
	}
	s.connect()
	s.advance(quietTime)
	serial := 0
	s.lose = func(string) bool { serial++; return serial%3 == 0 } // one message in three
	s.advance(6 * time.Hour)
	lost := 0
	for _, list := range s.lists[1:] {
		lost += 100 - len(list)
	}
	// A device goes if its messages are lost three times in a row; the pattern shifts each time.
	if lost > 0 {
		t.Errorf("%d devices were gone in %d lists because the broker dropped messages", lost, len(s.lists))
	}
	if s.scans < 6*6 {
		t.Errorf("%d scans in six hours, want one every ten minutes", s.scans)
	}
}

// A broker under load must not be mistaken for one without devices.
func TestSlowBroker(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.deaf = true
	s.connect()
	s.advance(maxListing - 10*time.Second)
	if len(s.lists) > 0 {
		t.Error("an empty list was sent although the broker has not answered")
	}
	s.follower.Answered(s.now)
	for i := range 3 { // this broker sends in batches what it retains
		s.advance(quietTime - time.Millisecond)
		for _, message := range []string{"homie/a%d/$homie", "homie/a%d/$state"} {
			s.follower.Message(convention.Message{Topic: fmt.Sprintf(message, i), Payload: []byte("ready")}, true, s.now)
		}
	}
	if len(s.lists) > 0 {
		t.Errorf("the lists %q were sent although the broker has sent messages all the time", s.lists)
	}
	s.advance(quietTime)
	s.expect("the broker is quiet", "a0", "a1", "a2")
}

// A list is never made from what a broker has sent that does not answer.
func TestDeafBroker(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.deaf = true
	s.device("a", "ready")
	s.connect()
	s.advance(maxListing - time.Second)
	if s.failed != nil {
		t.Fatalf("the connection ended early: %v", s.failed)
	}
	s.now = s.now.Add(time.Second)
	s.settle()
	if s.failed == nil || len(s.lists) > 0 {
		t.Errorf("got %v and the lists %q, want an error and none", s.failed, s.lists)
	}
}

func TestRefusedSubscription(t *testing.T) {
	s := simulate(t, "convention: homeAssistant")
	s.retained["homeassistant/a/b/config"] = `{"dev":{"ids":"1"},"avty_t":"secret/x"}`
	s.refuse = func(filter string) bool { return filter == "secret/x" }
	s.connect()
	s.advance(gather + quietTime)
	s.expect("the device cannot be seen to be online")
	if s.failures[SubscriptionRefused] != 1 || len(s.needed) > 0 {
		t.Errorf("failures %v, needed %q", s.failures, s.needed)
	}
	s = simulate(t, "convention: homeAssistant")
	s.refuse = func(filter string) bool { return strings.HasPrefix(filter, "homeassistant/") }
	s.connect()
	if len(s.needed) != 2 {
		t.Errorf("the needed filters are %q", s.needed)
	}
}

func TestPace(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.connect()
	s.advance(quietTime)
	before := len(s.lists)
	for i := range 1000 { // a hundred changes per second, for ten seconds
		s.device("a", []string{"ready", "init"}[i%2])
		s.publish("homie/a/$name", fmt.Sprint("name ", i))
		s.advance(10 * time.Millisecond)
	}
	if sent := len(s.lists) - before; sent < 15 || sent > 21 {
		t.Errorf("%d lists in ten seconds of changes, want about two per second", sent)
	}
	s.advance(time.Second)
	sent := len(s.lists)
	s.advance(relistInterval - time.Second)
	if len(s.lists) != sent {
		t.Error("a list was sent although nothing changed")
	}
}

func TestTooManyDevices(t *testing.T) {
	s := simulate(t, "convention: topics\ntopics: {announce: a/+, id: $1}")
	for i := range maxDevices {
		s.retained[fmt.Sprintf("a/m%04d", i)] = "x"
	}
	s.connect()
	s.advance(quietTime)
	s.publish("a/first", "x")
	s.publish("a/second", "x")
	s.advance(time.Second)
	last := s.lists[len(s.lists)-1]
	if len(last) != maxDevices || slices.Contains(last, "first") || s.failures[TooManyDevices] != 1 {
		t.Errorf("%d devices, failures %v: want those that were known, and one failure", len(last), s.failures)
	}
}

// TestTooManyTopics has devices that name more topics than may be subscribed to.
func TestTooManyTopics(t *testing.T) {
	s := simulate(t, "convention: homeAssistant")
	const topics = 8 // of an entity
	s.lose = func(topic string) bool { return !strings.HasSuffix(topic, "/config") }
	config := func(name string) string {
		var items []string
		for i := range topics {
			items = append(items, fmt.Sprintf(`{"t":"%s/%d"}`, name, i))
		}
		return `{"dev":{"ids":"` + name + `"},"avty":[` + strings.Join(items, ",") + "]}"
	}
	s.connect()
	s.advance(quietTime)
	announce := func(prefix string) {
		for i := range maxFilters/topics + 1 {
			payload := []byte(config(fmt.Sprint(prefix, i)))
			s.follower.Message(convention.Message{Topic: fmt.Sprintf("homeassistant/a/%d/config", i), Payload: payload}, false, s.now)
		}
		s.advance(pace)
	}
	announce("d")
	if n := len(s.subscriptions); n > maxFilters || n < maxFilters || s.failures[convention.FaultTooMany] == 0 {
		t.Errorf("%d subscriptions, failures %v", n, s.failures)
	}
	announce("e")
	if announce("f"); s.failed == nil {
		t.Fatalf("%d subscriptions, want another connection", len(s.subscriptions))
	}
	s.disconnect()
	s.connect()
	s.advance(quietTime)
	if n := len(s.subscriptions); n > maxFilters || s.failed != nil {
		t.Errorf("%d subscriptions of a new connection, %v", n, s.failed)
	}
}

func TestEndlessList(t *testing.T) {
	s := simulate(t, "convention: homie")
	s.device("a", "ready")
	s.connect()
	s.advance(quietTime)
	s.advance(missInterval)
	clear(s.retained)
	s.advance(relistInterval - 5*time.Second)
	for range 250 { // a broker that sends retained messages all the time
		s.follower.Message(convention.Message{Topic: "homie/x/$name", Payload: []byte("x")}, true, s.now)
		s.advance(time.Second)
	}
	s.expect("what an incomplete list lacks is kept", "a")
	if s.scans != 3 {
		t.Errorf("%d scans, want the endless list to end", s.scans)
	}
}

// TestOddTopic has a topic that is not valid UTF-8, which not every broker refuses.
func TestOddTopic(t *testing.T) {
	s := simulate(t, "convention: topics\ntopics: {announce: a/+, id: x$1}")
	s.retained["a/p\xfc"], s.retained["a/1"] = "x", "x"
	s.connect()
	s.advance(quietTime)
	if s.expect("the rest is found", "x1"); s.failures[convention.FaultTopic] != 1 {
		t.Errorf("the failures are %v", s.failures)
	}
}
