package follow

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mqtt/convention"
	"akri.sh/akri/discovery/mqtt/details"
)

// simulation is a Follower with a broker and a clock of the test.
type simulation struct {
	t        testing.TB
	now      time.Time
	follower *Follower
	// retained are the broker's retained messages by topic.
	retained map[string]string
	// subscriptions are the filters of the connection.
	subscriptions map[string]bool
	// lose makes the broker leave out a retained message.
	lose func(topic string) bool
	// deaf makes the broker not answer.
	deaf bool
	// refuse makes the broker refuse a filter.
	refuse func(filter string) bool

	lists    [][]string
	needed   []string
	failures map[string]int
	requests int
	scans    int
	// failed is the error that ended the connection.
	failed error
}

func simulate(t testing.TB, text string) *simulation {
	t.Helper()
	d, err := details.Parse("broker: {url: tcp://b}\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	state := convention.New(d)
	s := &simulation{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), retained: map[string]string{}, failures: map[string]int{},
		lose: func(string) bool { return false }, refuse: func(string) bool { return false },
	}
	s.follower = New(Options{
		Convention: state, BrokerURL: "tcp://b:1883", Grace: time.Duration(d.OfflineAfterSeconds) * time.Second,
		Admit:  func(c convention.Device) bool { return d.Filters.Admit(c.ID, c.Name, c.Manufacturer, c.Model) },
		Jitter: func(time.Duration) time.Duration { return 0 },
		Failed: func(reason, _ string) { s.failures[reason]++ }, Scanned: func(time.Time) { s.scans++ },
	})
	return s
}

// settle does what is due now, and answers as a broker.
func (s *simulation) settle() {
	for range 1000 {
		if s.failed = s.follower.Advance(s.now); s.failed != nil {
			return
		}
		requests, _ := s.follower.Requests()
		if list, changed := s.follower.List(); changed {
			ids := []string{}
			for _, device := range list {
				ids = append(ids, device.ID)
			}
			s.lists = append(s.lists, ids)
		}
		if len(requests) == 0 {
			return
		}
		s.requests += len(requests)
		for _, request := range requests {
			s.answer(request)
		}
		if !s.deaf {
			s.follower.Answered(s.now)
		}
	}
	s.t.Fatal("the follower does not stop to send requests")
}

func (s *simulation) answer(filters []string) {
	codes := make([]byte, len(filters))
	for i, filter := range filters {
		if s.refuse(filter) {
			codes[i] = refused
		} else {
			s.subscriptions[filter] = true
		}
	}
	s.needed = append(s.needed, s.follower.Subscribed(filters, codes)...)
	for i, filter := range filters {
		for _, topic := range slices.Sorted(maps.Keys(s.retained)) {
			if codes[i] != refused && matches(filter, topic) && !s.lose(topic) {
				s.follower.Message(convention.Message{Topic: topic, Payload: []byte(s.retained[topic])}, true, s.now)
			}
		}
	}
}

func matches(filter, topic string) bool {
	levels, names := strings.Split(filter, "/"), strings.Split(topic, "/")
	return slices.EqualFunc(levels, names, func(level, name string) bool { return level == "+" || level == name })
}

func (s *simulation) connect() {
	s.subscriptions = map[string]bool{}
	s.follower.Connected(s.now)
	s.settle()
}

func (s *simulation) disconnect() {
	s.subscriptions = nil
	s.follower.Disconnected()
}

// advance lets time pass, from one deadline of the follower to the next.
func (s *simulation) advance(d time.Duration) {
	end := s.now.Add(d)
	for range 100_000 {
		next := s.follower.Next()
		if next.IsZero() || next.After(end) {
			s.now = end
			s.settle()
			return
		}
		if next.After(s.now) {
			s.now = next
		}
		s.settle()
		if again := s.follower.Next(); !again.IsZero() && !again.After(s.now) {
			s.t.Fatalf("after Advance, something is still due since %v: a busy loop", s.now.Sub(again))
		}
	}
	s.t.Fatal("too many deadlines")
}

// publish publishes a retained message.
func (s *simulation) publish(topic, payload string) {
	if s.retained[topic] = payload; payload == "" {
		delete(s.retained, topic)
	}
	for filter := range s.subscriptions {
		if matches(filter, topic) {
			s.follower.Message(convention.Message{Topic: topic, Payload: []byte(payload)}, false, s.now)
			break
		}
	}
	s.settle()
}

func (s *simulation) device(id, state string) {
	s.publish("homie/"+id+"/$homie", "4.0.0")
	s.publish("homie/"+id+"/$state", state)
}

// expect checks the last list.
func (s *simulation) expect(why string, ids ...string) {
	s.t.Helper()
	var last []string
	if len(s.lists) > 0 {
		last = s.lists[len(s.lists)-1]
	}
	if len(s.lists) == 0 || !slices.Equal(last, ids) {
		s.t.Errorf("%s: the lists are %q, want the last to be %q", why, s.lists, ids)
	}
}
