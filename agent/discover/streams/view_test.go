package streams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/agent/discover/registry"
)

var (
	usb    = registry.Endpoint{Name: "h", Address: "/usb.sock"}
	camera = registry.Endpoint{Name: "h", Address: "/camera.sock"}
	serial = registry.Endpoint{Name: "h", Address: "/serial.sock"}
	other  = registry.Endpoint{Name: "other", Address: "/other.sock"}
)

// timeline drives a view through time. at sets the time of the next steps, in seconds.
type timeline struct {
	view *view
	now  time.Time
}

func (s *timeline) at(seconds int) *timeline {
	s.now = time.Unix(int64(seconds), 0)
	return s
}

func (s *timeline) expect(endpoints ...registry.Endpoint) *timeline {
	var entries []registry.Entry
	for _, endpoint := range endpoints {
		entries = append(entries, registry.Entry{Endpoint: endpoint, Shared: endpoint == camera})
	}
	s.view.Expect(entries)
	return s
}

func (s *timeline) opened(endpoint registry.Endpoint) *timeline {
	s.view.Opened(endpoint, endpoint == camera, s.now)
	return s
}

func (s *timeline) received(endpoint registry.Endpoint, ids ...string) *timeline {
	var devices []Device
	for _, text := range ids { // ID or ID=VALUE of a property
		id, value, found := strings.Cut(text, "=")
		d := Device{Key: Key{ID: id, Shared: endpoint == camera}}
		if found {
			d.Properties = map[string]string{"P": value}
		}
		devices = append(devices, d)
	}
	s.view.Received(endpoint, devices, "", s.now)
	return s
}

func (s *timeline) broke(endpoint registry.Endpoint) *timeline {
	s.view.Broke(endpoint, "gone", s.now)
	return s
}

func (s *timeline) refused(endpoint registry.Endpoint) *timeline {
	s.view.Refused(endpoint, "no")
	return s
}

// textOf formats a snapshot in one line: devices, with offline ones in parentheses,
// "settled", failures after "!", and the time of the next change after "@".
func textOf(p Snapshot) string {
	var parts []string
	for _, d := range p.Devices {
		id := d.ID
		if value, found := d.Properties["P"]; found {
			id += "=" + value
		}
		if !d.Online {
			id = "(" + id + ")"
		}
		parts = append(parts, id)
	}
	if p.Settled {
		parts = append(parts, "settled")
	}
	for _, failure := range p.Failures {
		parts = append(parts, "!"+failure.Endpoint.Address+" "+failure.Message)
	}
	if !p.Next.IsZero() {
		parts = append(parts, fmt.Sprint("@", p.Next.Unix()))
	}
	return strings.Join(parts, " ")
}

func TestView(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		timeline func(*timeline)
		at       int
		want     string
	}{
		"an agent that has just started": {
			reason:   "no message is not the same as no devices",
			timeline: func(s *timeline) { s.expect(usb) },
			at:       1, want: "@300",
		},
		"no handler ever registers": {
			reason:   "the devices of the last run are removed eventually",
			timeline: func(*timeline) {},
			at:       300, want: "settled",
		},
		"the only endpoint has reported": {
			reason:   "nothing is unknown",
			timeline: func(s *timeline) { s.expect(usb).at(1).opened(usb).received(usb, "a", "b") },
			at:       2, want: "a b settled",
		},
		"one of two endpoints has reported": {
			reason:   "a device of the other endpoint may still exist",
			timeline: func(s *timeline) { s.expect(usb, camera).at(1).opened(usb).received(usb, "a").opened(camera) },
			at:       2, want: "a @300",
		},
		"two endpoints": {
			reason:   "the devices are the union; shared and local ones differ",
			timeline: func(s *timeline) { s.expect(usb, camera).received(usb, "a", "b").received(camera, "b", "c") },
			at:       2, want: "a b b c settled",
		},
		"a device leaves a message": {
			reason:   "a message is the full list",
			timeline: func(s *timeline) { s.expect(camera).opened(camera).received(camera, "a", "b").received(camera, "b") },
			at:       2, want: "b settled",
		},
		"a handler restarts": {
			reason:   "nothing changes during the restart allowance",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb) },
			at:       19, want: "a settled @20",
		},
		"a handler is gone for longer than the patience": {
			reason:   "the failure is shown, and the devices still exist",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).at(15).broke(usb) },
			at:       39, want: "a settled !/usb.sock gone @40",
		},
		"a local handler does not come back": {
			reason:   "local devices are kept as if it might return at another address",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb) },
			at:       99, want: "(a) settled !/usb.sock gone @100",
		},
		"a local handler has not come back": {
			reason:   "its devices are removed",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb) },
			at:       100, want: "settled !/usb.sock gone",
		},
		"a handler returns at another address": {
			reason: "what its first list lacks is kept as if it had returned at the same one",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a", "b").at(10).broke(usb).at(15).expect(other).opened(other).received(other, "b")
			},
			at: 99, want: "(a) b settled !/usb.sock gone @100",
		},
		"a handler of shared devices does not come back": {
			reason:   "they are kept offline for the grace period",
			timeline: func(s *timeline) { s.expect(camera).opened(camera).received(camera, "a").at(10).broke(camera) },
			at:       40, want: "(a) settled !/camera.sock gone @310",
		},
		"a grace period of the Configuration": {
			reason: "it holds for local devices, too",
			timeline: func(s *timeline) {
				s.view.grace = time.Hour
				s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).expect()
			},
			at: 3609, want: "(a) settled !/usb.sock gone @3610",
		},
		"a grace period of the Configuration is over": {
			reason: "the device is removed",
			timeline: func(s *timeline) {
				s.view.grace = time.Hour
				s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).expect()
			},
			at: 3610, want: "settled",
		},
		"an agent that restarts in the grace period": {
			reason: "it waits as long as the earlier agent would have",
			timeline: func(s *timeline) {
				s.view.grace = time.Hour
				s.expect()
			},
			at: 3599, want: "@3600",
		},
		"the grace of shared devices is over": {
			reason:   "five minutes after the stream broke",
			timeline: func(s *timeline) { s.expect(camera).opened(camera).received(camera, "a").at(10).broke(camera) },
			at:       310, want: "settled !/camera.sock gone",
		},
		"a handler that crashes again and again": {
			reason: "only a message ends the grace period, not a new stream",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).at(20).opened(usb).broke(usb).at(99).opened(usb).broke(usb)
			},
			at: 100, want: "settled !/usb.sock gone",
		},
		"a handler is back and has not reported": {
			reason:   "its devices are kept online",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).at(20).opened(usb) },
			at:       60, want: "a settled !/usb.sock gone @320",
		},
		"a handler is back and stays silent": {
			reason:   "some handlers never send an empty first list",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).at(20).opened(usb) },
			at:       320, want: "settled !/usb.sock gone",
		},
		"a handler reports again": {
			reason: "nothing remains of the failure",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).at(20).opened(usb).received(usb, "a")
			},
			at: 60, want: "a settled",
		},
		"one of two handlers disappears": {
			reason: "the devices of the other handler are not affected",
			timeline: func(s *timeline) {
				s.expect(usb, camera).opened(usb).received(usb, "a").opened(camera).received(camera, "b").at(10).broke(usb)
			},
			at: 100, want: "b settled !/usb.sock gone",
		},
		"the details are edited": {
			reason: "devices are kept until the first message of the new stream",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(10)
				s.view.Reopen(usb, false, s.now)
				s.at(11).opened(usb)
			},
			at: 200, want: "a settled @311",
		},
		"the new details are refused": {
			reason: "a typing error removes no device, and is shown at once",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(10)
				s.view.Reopen(usb, false, s.now)
				s.at(11).opened(usb).refused(usb)
			},
			at: 2000, want: "a settled !/usb.sock no",
		},
		"a handler refuses the details, and then is gone": {
			reason: "its devices are not kept for ever",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(10).refused(usb).at(20).broke(usb).expect()
			},
			at: 110, want: "@300",
		},
		"the details are refused from the start": {
			reason:   "the devices of the last run are kept until the handler accepts the request",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).refused(usb) },
			at:       2000, want: "!/usb.sock no",
		},
		"the request is incomplete": {
			reason:   "no endpoint is late while a Secret is missing",
			timeline: func(s *timeline) { s.expect(usb); s.view.Hold(true, s.now) },
			at:       2000, want: "",
		},
		"the request is complete again": {
			reason:   "the settle limit starts again",
			timeline: func(s *timeline) { s.expect(usb); s.view.Hold(true, s.now); s.at(1000); s.view.Hold(false, s.now) },
			at:       1001, want: "@1300",
		},
		"another handler is named": {
			reason: "the devices of the old handler are kept until the new one has reported",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(1000)
				s.view.ChangeHandler(s.now)
				s.expect(other)
			},
			at: 1001, want: "a @1300",
		},
		"another handler has reported": {
			reason: "the devices of the old handler are removed",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(1000)
				s.view.ChangeHandler(s.now)
				s.expect(other).opened(other).received(other, "b")
			},
			at: 1001, want: "b settled",
		},
		"the first handler is named again": {
			reason: "nothing remains of the other handler",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(1000)
				s.view.ChangeHandler(s.now)
				s.expect(other)
				s.view.ChangeHandler(s.now)
				s.expect(usb).opened(usb)
				s.view.At(s.now)
				s.received(usb, "b")
			},
			at: 1001, want: "b settled",
		},
		"two endpoints describe a device differently": {
			reason: "the first one's description counts",
			timeline: func(s *timeline) {
				s.expect(serial, usb).opened(usb).received(usb, "b", "a=1", "c=1").opened(serial).received(serial, "c=2", "a=2", "b")
			},
			at: 10, want: "a=2 b c=2 settled",
		},
		"an endpoint is forgotten": {
			reason: "its grace period has passed, and its failure is no longer shown",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(10).broke(usb).at(310)
				s.view.At(s.now)
				s.expect()
			},
			at: 311, want: "settled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &timeline{view: newView(time.Unix(0, 0)), now: time.Unix(0, 0)}
			tc.timeline(s)
			now := time.Unix(int64(tc.at), 0)
			if got := textOf(s.view.At(now)); got != tc.want {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
			if again := textOf(s.view.At(now)); again != tc.want {
				t.Errorf("reading changed the snapshot: %s", again)
			}
		})
	}
}

// A handler that sends its list and ends the stream, again and again, has a failure that
// does not come and go: each change is a write of the Configuration's status.
func TestAStreamThatEndsAgainAndAgain(t *testing.T) {
	s := &timeline{view: newView(time.Unix(0, 0)), now: time.Unix(0, 0)}
	s.expect(usb)
	const failing = "a settled !/usb.sock gone"
	states := []string{"a settled"}
	look := func(now int) string {
		got, _, _ := strings.Cut(textOf(s.view.At(time.Unix(int64(now), 0))), " @")
		if got != states[len(states)-1] {
			states = append(states, got)
		}
		return got
	}
	const round, end = 15, 300
	for begin := 0; begin < end; begin += round {
		s.at(begin).opened(usb).received(usb, "a")
		look(begin)
		s.broke(usb)
		for second := range round {
			look(begin + second)
		}
	}
	if got := strings.Join(states, ", "); got != "a settled, "+failing {
		t.Errorf("the states were %s, want the failure to appear once", got)
	}
	s.at(end).opened(usb).received(usb, "a")
	if got := look(end + 9); got != failing {
		t.Errorf("nine seconds after the last start of the stream: %s, want %s", got, failing)
	}
	if got := look(end + 10); got != "a settled" {
		t.Errorf("ten seconds after the last start of the stream: %s", got)
	}
	if s.at(end + 20).broke(usb); look(end+29) != "a settled" || look(end+30) != failing {
		t.Errorf("a stream that has lasted breaks: %q, want a failure after ten seconds", states)
	}
}

func TestListed(t *testing.T) {
	const never = -1
	for name, tc := range map[string]struct {
		reason   string
		timeline func(*timeline)
		want     int64
	}{
		"an agent that has just started": {
			reason:   "there is no list",
			timeline: func(s *timeline) { s.expect(usb).opened(usb) },
			want:     never,
		},
		"the first lists after that": {
			reason: "Instances of the last run may come with a later list",
			timeline: func(s *timeline) {
				s.expect(usb, camera).opened(usb).received(usb).at(7).opened(camera).received(camera).at(9)
			},
			want: 7,
		},
		"a later list": {
			reason:   "what it lacks is gone",
			timeline: func(s *timeline) { s.expect(usb).opened(usb).received(usb, "a").at(7).received(usb) },
			want:     0,
		},
		"a handler restarts": {
			reason: "its first list may be incomplete",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7).broke(usb).at(8).opened(usb).received(usb)
			},
			want: 8,
		},
		"a later list after a restart": {
			reason: "what it lacks is gone",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7).broke(usb).at(8).opened(usb).received(usb).at(9).received(usb)
			},
			want: 8,
		},
		"a handler that was never reached": {
			reason:   "its first list is treated as if no stream had been lost",
			timeline: func(s *timeline) { s.expect(usb).broke(usb).at(8).opened(usb).received(usb) },
			want:     8,
		},
		"the details are edited": {
			reason: "the author wants what they exclude to go",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7)
				s.view.Reopen(usb, false, s.now)
				s.at(8).opened(usb).received(usb)
			},
			want: 0,
		},
		"a Secret is rotated": {
			reason: "the author has changed nothing about the devices",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7)
				s.view.Reopen(usb, true, s.now)
				s.at(8).opened(usb).received(usb)
			},
			want: 8,
		},
		"a handler that refuses restarts as another version": {
			reason: "the author has changed nothing, and the new version may know less at first",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7).broke(usb).refused(usb).at(8).opened(usb).received(usb)
			},
			want: 8,
		},
		"a request that was refused is corrected": {
			reason: "the author has edited the details",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7)
				s.view.Reopen(usb, false, s.now)
				s.refused(usb).at(8)
				s.view.Reopen(usb, false, s.now)
				s.opened(usb).received(usb)
			},
			want: 0,
		},
		"another handler is named by mistake": {
			reason: "the former handler starts again with the same request",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7)
				s.view.ChangeHandler(s.now)
				s.expect().at(8)
				s.view.ChangeHandler(s.now)
				s.expect(usb).opened(usb).received(usb)
			},
			want: 8,
		},
		"another handler is named": {
			reason: "the author wants the devices of the old one to go",
			timeline: func(s *timeline) {
				s.expect(usb).opened(usb).received(usb, "a").at(7)
				s.view.ChangeHandler(s.now)
				s.expect(other).at(8).opened(other).received(other)
			},
			want: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &timeline{view: newView(time.Unix(0, 0)), now: time.Unix(0, 0)}
			tc.timeline(s)
			want := time.Time{}
			if tc.want != never {
				want = time.Unix(tc.want, 0)
			}
			if got := s.view.At(s.now).Listed; !got.Equal(want) {
				t.Errorf("%s: listed at %s, want %s", tc.reason, got, want)
			}
		})
	}
}
