package onvif

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// TestTracker plays scripts of what a tracker hears, asks and lists. Semicolons separate steps, and
// "20x window, ask 1" repeats some:
//
//	match 1 2        cameras 1 and 2 answer a probe; hello and bye are the other announcements
//	match 2 as 1     camera 2 announces itself with the UUID of camera 1
//	bye 1 from 9     the announcement of camera 1 comes from the host of camera 9
//	listed           it is time to ask the host in the details
//	begin =1         requests begin: one
//	end 1 refused    those requests end; only camera 1 answers, and refuses the credentials
//	ask 1 =0+1       requests begin and end: no camera is asked, and one is checked
//	window, wait 1s  time passes: until the next probe is evaluated, or a second
//	devices 1        only camera 1 is a device
//	at 2             the only device has the address of camera 2
//	total 9-11       so many requests have begun since the last total
//	forgotten        the tracker remembers no camera
func TestTracker(t *testing.T) {
	const found = "match 1; ask 1; window; devices 1;"
	for name, tc := range map[string]struct{ details, script string }{
		"cameras that answer": {"", "match 1; hello 2; devices; ask 1 =2+0; devices 1; wait 1s; ask 2; devices 1 2"},
		"a new camera is asked soon, then less often": {"", "match 1; ask; 8x ask 1 =0+0, wait 250ms, ask =1+0;" +
			"ask 1 =0+0; wait 500ms; ask =1+0; wait 999ms; ask 1 =0+0; wait 1ms; ask =1+0; wait 2s; ask =1+0; wait 4s; ask 1; devices 1"},
		"one that never answers is forgotten": {"", "match 1; 4x ask, window; forgotten"},

		"two misses are no reason to ask":         {"", found + "2x window, ask =0+0; match 1; 3x window; devices 1"},
		"three misses and no answer":              {"", found + "3x window; devices 1; ask =0+1; devices; forgotten"},
		"it answers requests, but no probes":      {"", found + "20x window, ask 1; devices 1"},
		"it answers probes, but no requests":      {"", found + "20x match 1, window, ask; devices 1"},
		"it is heard while it is checked":         {"", found + "3x window; begin =1; match 1; end; devices 1"},
		"one request at a time":                   {"", "match 1; begin =1; hello 1; begin =0"},
		"the load on a known camera":              {"", "match 1; 60x ask 1, match 1, window; total 9-11"},
		"one that does not answer all questions":  {"", "match 1; 360x ask 1 incomplete, match 1, window; devices 1; total 55-70"},
		"refused credentials may lock an account": {"", "match 1; 360x ask 1 incomplete refused, match 1, window; devices 1; total 1-3"},

		"Bye, and no answer":                 {"", "match 1 2; ask 1 2; bye 1; ask =0+1; devices 2"},
		"Bye that is forged":                 {"", "match 1 2; ask 1 2; total 2-2; 100x bye 1, ask 1 2, wait 100ms; devices 1 2; total 1-4"},
		"Bye of another host":                {"", found + "bye 1 from 9; ask 1 =0+0"},
		"Bye, and an answer for some time":   {"", "match 1 2; ask 1 2; bye 1; ask 1; devices 1 2; wait 1s; ask; devices 2"},
		"Bye, and Hello":                     {"", "match 1 2; ask 1 2; bye 1; hello 1; ask; devices 1 2"},
		"Bye while it is asked":              {"", "match 1; ask 1; wait 2m; begin =1; bye 1; end 1; ask; devices"},
		"Hello after a restart, with copies": {"", "match 1; 60x ask, wait 1s, match 1; ask; total 1-99; 20x hello 1, ask; total 1-1"},

		"a host that is listed": {"addresses: [10.0.0.1]",
			"listed; listed; begin =1; end 1; devices 1; 20x window, listed, ask 1; devices 1; 4x window, ask; devices"},
		"a UUID that is made up at each start": {"", found + "4x match 1 as 7, ask 1, window; ask 1; devices 7"},
		"another address, id by UUID":          {"id: uuid", found + "hello 2 as 1; ask 2; at 2"},
		"another address, id by URL":           {"id: url", found + "hello 2 as 1; ask 2; at 2"},
		"two addresses, whose answers are lost": {"id: uuid", found + "match 1; match 2 as 1; ask 1 2; window; at 1;" +
			"2x match 2 as 1, ask 1 2, window; at 1;" +
			"match 1; 7x match 2 as 1, ask 1 2, window; at 2;" + // an answer to a request counts too
			"3x match 1, match 2 as 1, ask 1 2, window, at 2; 20x ask 1 2, window, at 2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &player{bench: newBench(t, tc.details)}
			for part := range strings.SplitSeq(tc.script, ";") {
				count, steps, isLoop := strings.Cut(part, "x ")
				times, _ := strconv.Atoi(strings.TrimSpace(count))
				if !isLoop {
					times, steps = 1, part
				}
				for range times {
					for step := range strings.SplitSeq(steps, ",") {
						p.play(strings.Fields(step))
					}
				}
			}
		})
	}
}

// player is a tracker that plays a script.
type player struct {
	*bench

	requests []request
	total    int
}

// play does one step.
func (p *player) play(words []string) {
	p.t.Helper()
	var numbers []int
	for _, word := range words[1:] {
		if n, err := strconv.Atoi(word); err == nil {
			numbers = append(numbers, n)
		}
	}
	result := ""
	switch words[0] {
	case "match":
		p.announce(wsdiscovery.Match, words, numbers)
	case "hello":
		p.announce(wsdiscovery.Hello, words, numbers)
	case "bye":
		p.announce(wsdiscovery.Bye, words, numbers)
	case "listed":
		p.listed(p.now, p.settings.Hosts()[0])
	case "begin":
		p.start()
		result = fmt.Sprintf("=%d", len(p.requests))
	case "ask":
		p.start()
		result = p.end(words, numbers)
	case "end":
		result = p.end(words, numbers)
	case "window":
		p.window()
	case "wait":
		duration, _ := time.ParseDuration(words[1])
		p.now = p.now.Add(duration)
	case "devices":
		p.wants(strings.Join(words, " "), numbers...)
	case "at":
		if devices := p.devices(); len(devices) != 1 || devices[0].Properties[PropertyIPAddress] != fmt.Sprintf("10.0.0.%d", numbers[0]) {
			p.t.Errorf("%q: the devices are %v", words, devices)
		}
	case "total":
		var low, high int
		if _, err := fmt.Sscanf(words[1], "%d-%d", &low, &high); err != nil || p.total < low || p.total > high {
			p.t.Errorf("%d requests, want %s", p.total, words[1])
		}
		p.total = 0
	case "forgotten":
		if len(p.cameras)+len(p.byHost)+len(p.byUUID)+len(p.silent)+len(p.hosts) != 0 {
			p.t.Errorf("it is remembered: %+v", p.tracker)
		}
	default:
		p.t.Fatalf("unknown step %q", words)
	}
	if want := words[len(words)-1]; strings.HasPrefix(want, "=") && want != result {
		p.t.Errorf("%q: got %s", words, result)
	}
}

// announce sends announcements of cameras: "1 2", "2 as 1" or "1 from 9".
func (p *player) announce(kind wsdiscovery.Kind, words []string, numbers []int) {
	as, from := slices.Contains(words, "as"), slices.Contains(words, "from")
	for i, n := range numbers {
		host, announcement := cameraNumber(kind, n)
		other, otherAnnouncement := cameraNumber(kind, numbers[len(numbers)-1])
		switch {
		case (as || from) && i > 0:
			return
		case as:
			announcement.UUID = otherAnnouncement.UUID
		case from:
			host = other
		}
		p.announced(p.now, host, announcement)
	}
}

func (p *player) start() {
	p.requests = p.begin(p.now)
	p.total += len(p.requests)
}

// end ends the requests that have begun; the numbers are those of cameras that answer.
func (p *player) end(words []string, numbers []int) (counts string) {
	asked, checked := 0, 0
	for _, r := range p.requests {
		if r.check {
			checked++
		} else {
			asked++
		}
		o := outcome{
			request: r, uuid: r.uuid, incomplete: slices.Contains(words, "incomplete"), refused: slices.Contains(words, "refused"),
		}
		for _, n := range numbers {
			if isCamera(r, n) {
				_, announcement := cameraNumber(wsdiscovery.Match, n)
				o.alive = true
				if r.uuid == "" { // the handler asks it for its UUID
					o.uuid = announcement.UUID
				}
			}
		}
		p.ended(p.now, o)
	}
	return fmt.Sprintf("=%d+%d", asked, checked)
}
