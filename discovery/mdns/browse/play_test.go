package browse

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// TestMachine plays scripts, each a day in a network. Semicolons separate steps:
//
//	up eth0            the machine has these interfaces only; move eth0: in another network
//	browse             somebody asks for _http._tcp
//	plug printer       a device of devicesOfScripts is there, and says nothing
//	tell printer 2 4   it sends its records, or some: 0 PTR, 2 SRV, 3 TXT, 4 A, 5 another address
//	end printer        it sends a goodbye and is off; off printer: without a word; on printer
//	set printer port 8080, set printer address A, text T, ttl N, more A, flush N, noflush, without N
//	                   its records change
//	lose all, lose none
//	run 5s             time passes
//	lists L            since the last step of this kind, L was published, or nothing; "none" is an empty list
//	last L             the same, whatever was published before
//	asked 0-3          so many questions were sent since the last step of this kind
//	keeps 1            so many entries are kept of eth0, or no interface if it is 0
func TestMachine(t *testing.T) {
	const (
		p, c     = "Printer:80 [192.0.2.1]", "Camera:80 [192.0.2.2] model=X2"
		moved    = "Printer:80 [192.0.2.9]"
		start    = "plug printer; browse; run 1m; lists " + p + "; "
		startTwo = "plug printer; plug camera; browse; run 1m; lists " + c + ", " + p + "; "
	)
	after := func(d time.Duration) string { return "; run " + d.String() + "; " }
	expired := func(ttl int, life time.Duration) string {
		return fmt.Sprintf("plug printer; set printer ttl %d; browse; run 10s; lists %s; off printer; tell printer", ttl, p) +
			after(life+verifyWindow-time.Second) + "lists; run 2s; lists none"
	}
	for name, script := range map[string]string{
		"the first list, without services": "browse" + after(settleTime-time.Millisecond) + "lists; run 1s; lists none",
		"the first list is complete":       "plug laser; " + startTwo + "browse" + after(batchTime) + "lists " + c + ", " + p, // at once
		"an announcement and a goodbye": "browse; run 5s; lists none; plug printer; tell printer; run 200ms; lists " + p +
			"; end printer; run 900ms; lists; run 300ms; lists none",
		"another responder corrects a goodbye": start + "end printer; on printer; run 500ms; tell printer; run 1m; lists",
		"a goodbye is lost, and its name is not requested for ever": start + "off printer; run 90s; lists; run 61s; lists none; run 1m; " +
			"keeps 1; asked 0-999; run 1h; asked 0-3",
		"records replace others": start + "set printer text state=busy; tell printer 3; run 10s; lists " + p + " state=busy; " +
			"set printer address 192.0.2.9; tell printer 4; run 10s; lists " + moved + " state=busy; " +
			"set printer more 2001:db8::9; tell printer 4; tell printer 5; run 10s; lists Printer:80 [192.0.2.9 2001:db8::9] state=busy; " +
			"set printer port 8080; tell printer 2; run 1h; lists Printer:8080 [192.0.2.9 2001:db8::9] state=busy",
		"a device that never sets the cache-flush bit": "plug printer; set printer noflush; set printer ttl 4500; browse; run 1m; lists " + p +
			"; set printer address 192.0.2.9; tell printer; run 6s; last " + moved + "; set printer address 192.0.2.1; tell printer; run 6s; " +
			"last " + p + "; set printer address 192.0.2.9; tell printer; run 6s; last " + moved + "; run 1h; lists; " +
			"set printer port 8080; tell printer; run 6s; set printer port 80; tell printer; run 10s; last " + moved +
			// Two addresses, whose answers come in packets of their own, stay.
			"; set printer more 192.0.2.5; tell printer 5; run 10s; lists Printer:80 [192.0.2.5 192.0.2.9]; tell printer 5; run 1h; lists",
		"an outage that is longer than a TTL": "plug printer; browse; run 95s; lists " + p + "; lose all; run 45s; lose none; run 1h; lists",
		"a service on two interfaces": "up eth0 wlan0; plug printer; plug twin; browse; run 1m; lists Printer:80 [192.0.2.1 198.51.100.1]; " +
			"end twin; run 1m; lists " + p,
		"two interfaces contradict each other": "up eth0 wlan0; plug printer; plug twin; set twin port 8080; browse; run 1m; lists " + p,
		"an interface returns": startTwo + "up" + after(verifyWindow-time.Second) + "off camera; up eth0" + after(verifyWindow+2*time.Second) +
			"lists " + p + "; up" + after(verifyWindow+2*time.Second) + "lists none; keeps 0; up eth0; run 2s; lists " + p,
		"services get all the time again": start + "up" + after(verifyWindow-time.Second) + "up eth0; lose all" +
			after(verifyWindow-5*time.Second) + "lose none; run 1m; lists",
		"an interface gets into another network": start + "off printer; move eth0" + after(verifyWindow+time.Second) + "last none",
		"a service without TXT": "browse; run 5s; lists none; plug printer; set printer without 3; tell printer" +
			after(textWait-100*time.Millisecond) + "lists; run 1s; lists " + p + "; run 1h; lists",
		"a very short TTL": expired(2, minTTL),
		"a very long TTL":  expired(365*24*3600, maxTTL),
		"the cache-flush bit of a shared record": startTwo + "off printer; " + // so that it corrects nothing
			"set camera flush 0; tell camera 0; run 10s; lists",
	} {
		t.Run(name, func(t *testing.T) { play(t, script) })
	}
	// The records of a device that does not answer are verified at the same time, in whatever order they
	// expire, once a second for each. The order is that of a map.
	for range 20 {
		play(t, "plug printer; browse; run 1m; asked 0-999; up"+after(verifyWindow+time.Second)+"keeps 0; asked 80-140")
	}
}

// devicesOfScripts are devices by their names in scripts.
var devicesOfScripts = map[string]struct {
	index                        int
	instance, kind, address, txt string
}{
	"printer": {eth0, "Printer", "_http._tcp", "192.0.2.1", ""}, "camera": {eth0, "Camera", "_http._tcp", "192.0.2.2", "model=X2"},
	"laser": {eth0, "Laser", "_ipp._tcp", "192.0.2.3", ""}, "twin": {wlan0, "Printer", "_http._tcp", "198.51.100.1", ""},
}

// player is a simulation that plays a script.
type player struct {
	*simulation

	sub     *subscription
	plugged map[string]*simulatedDevice
	asked   int
}

func play(t *testing.T, script string) {
	t.Helper()
	p := &player{simulation: newSimulation(t, eth0), plugged: map[string]*simulatedDevice{}}
	for step := range strings.SplitSeq(script, ";") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		switch verb {
		case "":
		case "plug":
			what := devicesOfScripts[rest]
			p.plugged[rest] = p.service(what.index, what.instance, what.kind, what.address, strings.Fields(what.txt)...)
		case "tell", "end", "off", "on", "set":
			p.device(verb, strings.Fields(rest))
		case "lists", "last", "asked", "keeps":
			p.check(verb, rest)
		default:
			p.network(verb, rest)
		}
	}
}

// network does a step that concerns the network, or the machine.
func (p *player) network(verb, rest string) {
	p.t.Helper()
	switch verb {
	case "up":
		var indexes []int
		for _, index := range []int{eth0, wlan0} {
			if strings.Contains(rest, interfaceNames[index]) {
				indexes = append(indexes, index)
			}
		}
		p.interfaces(indexes...)
	case "move":
		other := inNetwork(eth0, "eth0")
		other.Networks = []netip.Prefix{netip.MustParsePrefix("198.51.100.254/24")}
		p.machine.setInterfaces(p.now, []Interface{other})
		p.wake = p.now
	case "browse":
		p.sub = p.browse("_http._tcp")
	case "lose":
		p.lost = func() bool { return rest == "all" }
	case "run":
		duration, err := time.ParseDuration(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		p.run(duration)
	default:
		p.t.Fatalf("unknown step %s", verb)
	}
}

// device does a step that concerns a device.
func (p *player) device(verb string, words []string) {
	d := p.plugged[words[0]]
	switch verb {
	case "tell":
		records := d.records
		if len(words) > 1 {
			records = nil
			for _, word := range words[1:] {
				index, _ := strconv.Atoi(word)
				records = append(records, d.records[index])
			}
		}
		p.announce(d, records...)
	case "end":
		p.goodbye(d)
	case "set":
		d.set(words[1], words[len(words)-1])
	default:
		d.off = verb == "off"
	}
}

// set changes what a device says.
func (d *simulatedDevice) set(what, value string) {
	number, _ := strconv.Atoi(value)
	switch what {
	case "port":
		d.records[2].Port = uint16(number)
	case "text":
		d.records[3].Text = formatText(value)
	case "address":
		d.records[4].Address = netip.MustParseAddr(value)
	case "more":
		another := d.records[4]
		if another.Address = netip.MustParseAddr(value); another.Address.Is6() {
			another.Type = wire.AAAA
		}
		d.records = append(d.records, another)
	case "flush":
		d.records[number].Flush = true
	case "without":
		d.records = slices.Delete(d.records, number, number+1)
	}
	for i := range d.records {
		switch what {
		case "ttl":
			d.records[i].TTL = uint32(number)
		case "noflush":
			d.records[i].Flush = false
		}
	}
}

// check does a step that checks something.
func (p *player) check(verb, want string) {
	p.t.Helper()
	switch verb {
	case "lists", "last":
		var lists []string
		for _, list := range p.lists[p.sub] {
			lists = append(lists, short(list))
		}
		if verb == "last" && len(lists) > 1 {
			lists = lists[len(lists)-1:]
		}
		if got := strings.Join(lists, " | "); got != want {
			p.t.Fatalf("at %v, the lists are %q, want %q", p.now.Format("15:04:05.000"), got, want)
		}
		p.lists[p.sub] = nil
	case "asked":
		var low, high int
		asked := p.questions - p.asked
		if _, err := fmt.Sscanf(want, "%d-%d", &low, &high); err != nil || asked < low || asked > high {
			p.t.Fatalf("%d questions, want %s", asked, want)
		}
		p.asked = p.questions
	case "keeps":
		kept := 0
		if l := p.machine.links["eth0"]; l != nil {
			kept = len(l.entries)
		}
		if fmt.Sprint(kept) != want || want == "0" && len(p.machine.links) > 0 {
			p.t.Fatalf("%d entries and %d interfaces are left, want %s", kept, len(p.machine.links), want)
		}
	}
}

// short returns a list with the services' names, ports, addresses and texts.
func short(list string) string {
	var all []string
	for line := range strings.SplitSeq(list, "\n") {
		name, rest, _ := strings.Cut(line, "._http._tcp.local ")
		_, rest, isService := strings.Cut(rest, ":")
		if !isService {
			return "none"
		}
		all = append(all, name+":"+rest)
	}
	return strings.Join(all, ", ")
}
