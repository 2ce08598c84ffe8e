package browse

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/fulltest"
)

const (
	printer = "Printer._http._tcp.local printer.local:80 [192.0.2.1]"
	camera  = "Camera._http._tcp.local camera.local:80 [192.0.2.2] model=X2"
)

// TestQuestions: the intervals grow, and a query says what is known.
func TestQuestions(t *testing.T) {
	s := newSimulation(t, eth0)
	sub := s.browse("_http._tcp")
	s.run(10 * time.Second)
	if s.questions != 4 { // after 0, 1, 3 and 9 seconds
		t.Errorf("%d questions in 10 seconds, want 4", s.questions)
	}
	s.run(24 * time.Hour)
	if s.questions < 24 || s.questions > 40 {
		t.Errorf("%d questions in a day without services, want one an hour", s.questions)
	}
	for i := range 100 {
		s.service(eth0, fmt.Sprintf("Device %d", i), "_http._tcp", fmt.Sprintf("192.0.2.%d", i))
	}
	s.machine.links["eth0"].restart(s.now)
	s.wake = s.now
	s.run(time.Minute)
	if lists := s.lists[sub]; strings.Count(lists[len(lists)-1], "\n") != 99 {
		t.Fatalf("the last list is %q", lists[len(lists)-1])
	}
	if s.known < 300 || s.truncated < 3 || s.truncated > s.packets/2 { // after 1, 3 and 9 seconds
		t.Errorf("%d of %d queries are continued, with %d known answers", s.truncated, s.packets, s.known)
	}
	questions, packets, ipv6 := s.questions, s.packets, s.ipv6
	s.run(time.Hour)
	if asked := s.ipv6 - ipv6; asked > 600 { // after 1, 3, 7, 15, 31 minutes and so on
		t.Errorf("%d questions for the IPv6 addresses of 100 hosts that have none", asked)
	}
	// 100 SRV and 100 A records, each once in 96 to 98 seconds, and some PTR and TXT records.
	if asked := s.questions - questions; asked < 7000 || asked > 8500 {
		t.Errorf("%d questions in an hour", asked)
	}
	if sent := s.packets - packets; sent > 1500 {
		t.Errorf("%d packets in an hour: questions are not sent together", sent)
	}
}

// TestAddressesInTheNetworkComeFirst: hosts also announce those of their VPNs and containers.
func TestAddressesInTheNetworkComeFirst(t *testing.T) {
	s := newSimulation(t, eth0, wlan0)
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.7")
	for _, address := range []string{"10.8.0.5", "172.17.0.1", "169.254.3.4"} {
		more := device.records[4]
		more.Address = netip.MustParseAddr(address)
		device.records = append(device.records, more)
	}
	for _, address := range []string{"fd00:8::5", "fe80::1"} {
		more := device.records[4]
		more.Type, more.Address = wire.AAAA, netip.MustParseAddr(address)
		device.records = append(device.records, more)
	}
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [192.0.2.7 10.8.0.5 172.17.0.1 fd00:8::5 169.254.3.4 fe80::1%eth0]")
	if sub.last[0].OnLink != 1 {
		t.Errorf("%d addresses are in the network", sub.last[0].OnLink)
	}
	// An interface without IPv4 has a network all the same.
	s.machine.setInterfaces(s.now, []Interface{
		{Index: eth0, Name: "eth0", Networks: []netip.Prefix{netip.MustParsePrefix("fe80::9/64"), netip.MustParsePrefix("fd00:8::9/64")}},
	})
	s.wake = s.now
	s.run(time.Minute)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [fd00:8::5 10.8.0.5 172.17.0.1 192.0.2.7 169.254.3.4 fe80::1%eth0]")
}

// TestNoFlapping: one packet in three is lost, in both directions, for six hours. It
// includes the announcements.
func TestNoFlapping(t *testing.T) {
	seeds := []uint64{1}
	if fulltest.Enabled() {
		seeds = append(seeds, 2, 3)
	}
	for _, seed := range seeds {
		s := newSimulation(t, eth0)
		for i := range 20 {
			s.service(eth0, fmt.Sprintf("Device %02d", i), "_http._tcp", fmt.Sprintf("192.0.2.%d", i+1))
		}
		sub := s.browse("_http._tcp")
		s.run(time.Minute)
		s.lists[sub] = nil
		losses := newLoss(seed)
		s.lost = losses.third
		s.run(6 * time.Hour)
		s.expect(sub)
		if losses.count < 5000 {
			t.Fatalf("only %d packets were lost", losses.count)
		}
	}
}

func TestTypesAndSubtypes(t *testing.T) {
	s := newSimulation(t, eth0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	ipp := s.service(eth0, "Laser", "_ipp._tcp", "192.0.2.4")
	colour := ipp.records[0]
	colour.Name = "_colour._sub._ipp._tcp.local"
	ipp.records = append(ipp.records, colour)
	all, subtype := s.browse(AllTypes), s.browse("_Colour._SUB._ipp._tcp")
	s.run(time.Minute)
	laser := "Laser._ipp._tcp.local laser.local:80 [192.0.2.4]"
	s.expect(subtype, laser)
	s.expect(all, laser+"\n"+printer)
	s.goodbye(ipp)
	s.run(time.Minute)
	s.expect(subtype, "")
	s.expect(all, printer)
}

func TestBounds(t *testing.T) {
	s := newSimulation(t, eth0)
	sub := s.browse("_http._tcp")
	s.run(5 * time.Second)
	for i := range maxServices + 200 {
		d := s.service(eth0, fmt.Sprintf("Device %04d", i), "_http._tcp", "192.0.2.1")
		s.announce(d, d.records...)
		d.off = true
	}
	s.run(time.Second)
	lists := s.lists[sub]
	if count := strings.Count(lists[len(lists)-1], "\n") + 1; count != maxServices {
		t.Errorf("%d services, want %d", count, maxServices)
	}
	if s.failures[FailedFull] < 200 {
		t.Errorf("failures %v", s.failures)
	}
	l := s.machine.links["eth0"]
	host := s.service(eth0, "Device 0001", "_http._tcp", "192.0.2.1")
	for i := range 100 {
		host.records[4].Address = netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		s.announce(host, host.records[4])
	}
	stranger := s.service(eth0, "Stranger", "_other._tcp", "192.0.2.1")
	s.announce(stranger, stranger.records...)
	s.run(100 * time.Millisecond)
	full := s.failures[FailedFull]
	long := s.service(eth0, "Device 0002", "_http._tcp", "192.0.2.1", strings.Split(strings.Repeat("x=12345678 ", 200), " ")...)
	s.announce(long, long.records[3])
	s.run(100 * time.Millisecond)
	if texts := l.entries[setKey{"device 0002._http._tcp.local", wire.TXT}].records; len(texts) != 1 || s.failures[FailedFull] != full+1 {
		t.Errorf("a TXT record of more than %d bytes: %d records, failures %v", maxTextBytes, len(texts), s.failures)
	}
	if addresses := len(l.addresses("device-0001.local")); addresses > maxRecordsPerName {
		t.Errorf("%d addresses of a host", addresses)
	}
	if l.entries[setKey{"stranger._other._tcp.local", wire.SRV}] != nil {
		t.Error("a record that nobody needs is kept")
	}
	// Everything is forgotten with the last subscription.
	s.machine.unsubscribe(sub)
	s.advance()
	if len(l.entries) != 0 || l.count != 0 {
		t.Errorf("left: %d entries, %d records", len(l.entries), l.count)
	}
}

// renamed gives another name to a service, in all its records.
func renamed(name wire.Name) func(records []wire.Record) {
	return func(r []wire.Record) { r[0].Target, r[2].Name, r[3].Name = name, name, name }
}

// TestNonsenseIsIgnored: records that cannot be true lead nowhere.
func TestNonsenseIsIgnored(t *testing.T) {
	for name, change := range map[string]func(records []wire.Record){
		"a service of another type":   renamed("Printer._ipp._tcp.local"),
		"a service in another domain": renamed("Printer._http._tcp.example"),
		"the type itself":             func(r []wire.Record) { r[0].Target = r[0].Name },
		"the port 0":                  func(r []wire.Record) { r[2].Port = 0 },
		"no host":                     func(r []wire.Record) { r[2].Target = "" },
		"a loopback address":          func(r []wire.Record) { r[4].Address = netip.MustParseAddr("127.0.0.1") },
		"a multicast address":         func(r []wire.Record) { r[4].Address = netip.MustParseAddr("224.0.0.251") },
		"the broadcast address":       func(r []wire.Record) { r[4].Address = netip.MustParseAddr("255.255.255.255") },
		"no address":                  func(r []wire.Record) { r[4].Address = netip.MustParseAddr("0.0.0.0") },
		"an IPv4 address in IPv6": func(r []wire.Record) {
			r[4].Type, r[4].Address = wire.AAAA, netip.MustParseAddr("::ffff:192.0.2.1")
		},
		"an address of another host":     func(r []wire.Record) { r[4].Name = "other.local" },
		"an enumeration that is a cycle": func(r []wire.Record) { r[1].Target = r[1].Name },
		"an enumeration of no types": func(r []wire.Record) {
			r[0].Name, r[1].Target = "printer.http.local", "printer.http.local"
			renamed("Printer.printer.http.local")(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, eth0)
			device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
			change(device.records)
			types := "_http._tcp"
			if strings.HasPrefix(name, "an enumeration") {
				types = AllTypes
			}
			sub := s.browse(types)
			s.run(10 * time.Minute)
			s.expect(sub, "")
		})
	}
}

func TestQueryIsChecked(t *testing.T) {
	for _, query := range []Query{
		{}, {Types: []string{"_http._tcp"}, Domain: "a..b"}, {Types: []string{"_" + strings.Repeat("x", 63) + "._tcp"}},
	} {
		if s, err := newSubscription(query); err == nil {
			t.Errorf("%+v was accepted as %v", query, s.names)
		}
	}
}
