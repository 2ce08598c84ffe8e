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
	other  = registry.Endpoint{Name: "other", Address: "/other.sock"}
)

// story drives a View through time; each step says at which second it happens.
type story struct {
	view *View
	now  time.Time
}

func (s *story) at(seconds int) *story {
	s.now = time.Unix(int64(seconds), 0)
	return s
}

func (s *story) expect(endpoints ...registry.Endpoint) *story {
	var entries []registry.Entry
	for _, endpoint := range endpoints {
		entries = append(entries, registry.Entry{Endpoint: endpoint, Shared: endpoint == camera})
	}
	s.view.Expect(entries)
	return s
}

func (s *story) opened(endpoint registry.Endpoint) *story {
	s.view.Opened(endpoint, endpoint == camera, s.now)
	return s
}

func (s *story) spoke(endpoint registry.Endpoint, ids ...string) *story {
	var devices []Device
	for _, id := range ids {
		devices = append(devices, Device{Key: Key{ID: id, Shared: endpoint == camera}})
	}
	s.view.Spoke(endpoint, devices, "")
	return s
}

func (s *story) broke(endpoint registry.Endpoint) *story {
	s.view.Broke(endpoint, "gone", s.now)
	return s
}

func (s *story) refused(endpoint registry.Endpoint) *story {
	s.view.Refused(endpoint, "no")
	return s
}

// text is a picture in a line: devices, those offline in brackets, "settled",
// failures after "!", the next look after "@".
func text(p Picture) string {
	var parts []string
	for _, d := range p.Devices {
		if d.Online {
			parts = append(parts, d.ID)
		} else {
			parts = append(parts, "("+d.ID+")")
		}
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
		reason string
		story  func(*story)
		at     int
		want   string
	}{
		"an agent that has just started": {
			reason: "nothing heard is not the same as no devices",
			story:  func(s *story) { s.expect(usb) },
			at:     1, want: "@300",
		},
		"no handler ever registers": {
			reason: "what the last run published must go one day",
			story:  func(*story) {},
			at:     300, want: "settled",
		},
		"the only endpoint has spoken": {
			reason: "now all is known",
			story:  func(s *story) { s.expect(usb).at(1).opened(usb).spoke(usb, "a", "b") },
			at:     2, want: "a b settled",
		},
		"one of two endpoints has spoken": {
			reason: "a device of the other must not be taken for gone",
			story:  func(s *story) { s.expect(usb, camera).at(1).opened(usb).spoke(usb, "a").opened(camera) },
			at:     2, want: "a @300",
		},
		"two endpoints": {
			reason: "the devices are the union, told apart by whether they are shared",
			story:  func(s *story) { s.expect(usb, camera).spoke(usb, "a", "b").spoke(camera, "b", "c") },
			at:     2, want: "a b b c settled",
		},
		"a device leaves a message": {
			reason: "the message of a live stream is the full list",
			story:  func(s *story) { s.expect(camera).opened(camera).spoke(camera, "a", "b").spoke(camera, "b") },
			at:     2, want: "b settled",
		},
		"a handler restarts": {
			reason: "nothing changes while it may be back",
			story:  func(s *story) { s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb) },
			at:     19, want: "a settled @20",
		},
		"a handler stays away for longer than patience": {
			reason: "now its author is told, and the devices are still there",
			story:  func(s *story) { s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb).at(15).broke(usb) },
			at:     39, want: "a settled !/usb.sock gone @40",
		},
		"a local handler does not come back": {
			reason: "no grace beyond the allowance for a restart",
			story:  func(s *story) { s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb) },
			at:     40, want: "settled !/usb.sock gone",
		},
		"a handler of shared devices does not come back": {
			reason: "they are kept for the grace, offline",
			story:  func(s *story) { s.expect(camera).opened(camera).spoke(camera, "a").at(10).broke(camera) },
			at:     40, want: "(a) settled !/camera.sock gone @310",
		},
		"the grace of shared devices is over": {
			reason: "five minutes from the break",
			story:  func(s *story) { s.expect(camera).opened(camera).spoke(camera, "a").at(10).broke(camera) },
			at:     310, want: "settled !/camera.sock gone",
		},
		"a handler that crashes again and again": {
			reason: "being opened does not stop the clock, only a message does",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb).at(20).opened(usb).broke(usb).at(39).opened(usb).broke(usb)
			},
			at: 40, want: "settled !/usb.sock gone",
		},
		"a handler is back and has not spoken": {
			reason: "its devices stay, and are online as before",
			story:  func(s *story) { s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb).at(20).opened(usb) },
			at:     60, want: "a settled !/usb.sock gone @320",
		},
		"a handler is back and says nothing": {
			reason: "some handlers never send an empty first list",
			story:  func(s *story) { s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb).at(20).opened(usb) },
			at:     320, want: "settled !/usb.sock gone",
		},
		"a handler speaks again": {
			reason: "all is well, without a trace of the break",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb).at(20).opened(usb).spoke(usb, "a")
			},
			at: 60, want: "a settled",
		},
		"one of two handlers goes": {
			reason: "the other's devices are not its business, and one seen by both stays",
			story: func(s *story) {
				s.expect(usb, camera).opened(usb).spoke(usb, "a").opened(camera).spoke(camera, "b").at(10).broke(usb)
			},
			at: 50, want: "b settled !/usb.sock gone",
		},
		"the details are edited": {
			reason: "nothing goes until the new stream has spoken",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(10)
				s.view.Reopen(usb)
				s.at(11).opened(usb)
			},
			at: 200, want: "a settled @311",
		},
		"the new details are refused": {
			reason: "a slip of the pen costs no device, and is told at once",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(10)
				s.view.Reopen(usb)
				s.at(11).opened(usb).refused(usb)
			},
			at: 2000, want: "a settled !/usb.sock no",
		},
		"the details are refused from the start": {
			reason: "what the last run published stays until the handler accepts the question",
			story:  func(s *story) { s.expect(usb).opened(usb).refused(usb) },
			at:     2000, want: "!/usb.sock no",
		},
		"the question cannot be asked": {
			reason: "no endpoint is late while a Secret is missing",
			story:  func(s *story) { s.expect(usb); s.view.Hold(true, s.now) },
			at:     2000, want: "",
		},
		"the question can be asked again": {
			reason: "from now on the endpoints have their time",
			story:  func(s *story) { s.expect(usb); s.view.Hold(true, s.now); s.at(1000); s.view.Hold(false, s.now) },
			at:     1001, want: "@1300",
		},
		"another handler is asked": {
			reason: "the old one's devices stay until it has spoken",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(1000)
				s.view.AskAnother(s.now)
				s.expect(other)
			},
			at: 1001, want: "a @1300",
		},
		"another handler has spoken": {
			reason: "now the old one's devices go",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(1000)
				s.view.AskAnother(s.now)
				s.expect(other).opened(other).spoke(other, "b")
			},
			at: 1001, want: "b settled",
		},
		"the first handler is asked again": {
			reason: "as if nothing had been",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(1000)
				s.view.AskAnother(s.now)
				s.expect(other)
				s.view.AskAnother(s.now)
				s.expect(usb).opened(usb)
				s.view.At(s.now)
				s.spoke(usb, "b")
			},
			at: 1001, want: "b settled",
		},
		"an endpoint is forgotten": {
			reason: "its devices have had their grace by then; no failure is left",
			story: func(s *story) {
				s.expect(usb).opened(usb).spoke(usb, "a").at(10).broke(usb).at(310)
				s.view.At(s.now)
				s.expect()
			},
			at: 311, want: "settled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{view: NewView(DefaultGrace, time.Unix(0, 0)), now: time.Unix(0, 0)}
			tc.story(s)
			now := time.Unix(int64(tc.at), 0)
			if got := text(s.view.At(now)); got != tc.want {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
			if again := text(s.view.At(now)); again != tc.want {
				t.Errorf("looking changed the picture: %s", again)
			}
		})
	}
}
