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

func TestFirstListIsCompleteEvenIfEmpty(t *testing.T) {
	s := newSimulation(t, eth0)
	sub := s.browse("_http._tcp")
	s.run(settleTime - time.Millisecond)
	s.expect(sub)
	s.run(time.Second)
	s.expect(sub, "")

	s = newSimulation(t, eth0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	s.service(eth0, "Camera", "_http._tcp", "192.0.2.2", "model=X2")
	s.service(eth0, "Other", "_ipp._tcp", "192.0.2.3")
	sub = s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, camera+"\n"+printer)

	again := s.browse("_http._tcp")
	s.run(batchTime)
	s.expect(again, camera+"\n"+printer) // at once
}

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

func TestAnnouncementAndGoodbye(t *testing.T) {
	s := newSimulation(t, eth0)
	sub := s.browse("_http._tcp")
	s.run(5 * time.Second)
	s.expect(sub, "")
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	s.announce(device, device.records...)
	s.run(200 * time.Millisecond)
	s.expect(sub, printer)
	s.goodbye(device)
	s.run(900 * time.Millisecond)
	s.expect(sub)
	s.run(300 * time.Millisecond)
	s.expect(sub, "")

	// Another responder, or the device itself, may correct a goodbye within a second.
	device.off = false
	s.announce(device, device.records...)
	s.run(time.Second)
	s.expect(sub, printer)
	s.goodbye(device)
	device.off = false
	s.run(500 * time.Millisecond)
	s.announce(device, device.records...)
	s.run(time.Minute)
	s.expect(sub)
}

// TestLostGoodbye: a device that is switched off disappears after its TTL of 120 s and the
// time for verification, and its name is not requested for ever.
func TestLostGoodbye(t *testing.T) {
	s := newSimulation(t, eth0)
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, printer)
	device.off = true
	s.run(150*time.Second - time.Minute)
	s.expect(sub)
	s.run(time.Minute + time.Second)
	s.expect(sub, "")
	s.run(time.Minute)
	if entries := len(s.machine.links["eth0"].entries); entries != 1 {
		t.Errorf("%d entries are left, want only that of the type", entries)
	}
	questions := s.questions
	s.run(time.Hour)
	if asked := s.questions - questions; asked > 3 {
		t.Errorf("%d questions in an hour about nothing", asked)
	}
}

func TestChanges(t *testing.T) {
	s := newSimulation(t, eth0)
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, printer)

	// A new TXT record replaces the old one, as it has the cache-flush bit.
	text := &device.records[3]
	text.Text = formatText("state=busy")
	s.announce(device, *text)
	s.run(10 * time.Second)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [192.0.2.1] state=busy")

	// A new address, and then two in two packets.
	address := &device.records[4]
	address.Address = netip.MustParseAddr("192.0.2.9")
	s.announce(device, *address)
	s.run(10 * time.Second)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [192.0.2.9] state=busy")
	second := *address
	second.Type, second.Address = wire.AAAA, netip.MustParseAddr("2001:db8::9")
	device.records = append(device.records, second)
	s.announce(device, *address)
	s.announce(device, second)
	s.run(10 * time.Second)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [192.0.2.9 2001:db8::9] state=busy")

	// Another port and host.
	device.records[2].Port = 8080
	s.announce(device, device.records[2])
	s.run(time.Hour)
	s.expect(sub, "Printer._http._tcp.local printer.local:8080 [192.0.2.9 2001:db8::9] state=busy")
}

// TestNewAddressWithoutFlush: some devices never set the cache-flush bit, and get another
// address without a goodbye. Its host answers with the new one only.
func TestNewAddressWithoutFlush(t *testing.T) {
	const changed = "Printer._http._tcp.local printer.local:80 [192.0.2.9]"
	s := newSimulation(t, eth0)
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	for i := range device.records {
		device.records[i].Flush, device.records[i].TTL = false, 4500
	}
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, printer)
	for _, to := range []struct{ address, want string }{{"192.0.2.9", changed}, {"192.0.2.1", printer}, {"192.0.2.9", changed}} {
		device.records[4].Address = netip.MustParseAddr(to.address)
		s.announce(device, device.records...)
		s.run(6 * time.Second)
		if lists := s.lists[sub]; len(lists) == 0 || lists[len(lists)-1] != to.want {
			t.Errorf("soon after the change to %s, the lists are %q", to.address, lists)
		}
		s.lists[sub] = nil
	}
	s.run(time.Hour)
	s.expect(sub)

	// The same for another port.
	device.records[2].Port = 8080
	s.announce(device, device.records...)
	s.run(6 * time.Second)
	device.records[2].Port = 80
	s.announce(device, device.records...)
	s.run(10 * time.Second)
	if lists := s.lists[sub]; lists[len(lists)-1] != changed {
		t.Errorf("the lists are %q", lists)
	}
	s.lists[sub] = nil

	// A host with two addresses, whose answers come in packets of their own, keeps both.
	second := device.records[4]
	second.Address = netip.MustParseAddr("192.0.2.5")
	device.records = append(device.records, second)
	s.announce(device, second)
	s.run(10 * time.Second)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [192.0.2.5 192.0.2.9]")
	s.announce(device, second)
	s.run(time.Hour)
	s.expect(sub)
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

// TestTotalLoss: devices survive an outage of the network.
func TestTotalLoss(t *testing.T) {
	s := newSimulation(t, eth0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	sub := s.browse("_http._tcp")
	s.run(95 * time.Second)
	s.expect(sub, printer)
	s.lost = func() bool { return true }
	s.run(45 * time.Second) // beyond the TTL
	s.lost = func() bool { return false }
	s.run(time.Hour)
	s.expect(sub)
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

// TestTwoInterfaces: a service on both is one, and one interface is enough.
func TestTwoInterfaces(t *testing.T) {
	s := newSimulation(t, eth0, wlan0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	other := s.service(wlan0, "Printer", "_http._tcp", "198.51.100.1")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, "Printer._http._tcp.local printer.local:80 [192.0.2.1 198.51.100.1]")
	s.goodbye(other)
	s.run(time.Minute)
	s.expect(sub, printer)
}

// TestInterfaceReturns: an interface that is away for some seconds changes nothing; services
// that are no longer there afterwards disappear.
func TestInterfaceReturns(t *testing.T) {
	s := newSimulation(t, eth0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	gone := s.service(eth0, "Camera", "_http._tcp", "192.0.2.2", "model=X2")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, camera+"\n"+printer)
	s.interfaces()
	s.run(verifyWindow - time.Second)
	gone.off = true
	s.interfaces(eth0)
	s.run(verifyWindow + 2*time.Second)
	s.expect(sub, printer)
	s.interfaces()
	s.run(verifyWindow + 2*time.Second)
	s.expect(sub, "")
	if links := len(s.machine.links); links != 0 {
		t.Errorf("%d interfaces are left", links)
	}
	s.interfaces(eth0)
	s.run(2 * time.Second)
	s.expect(sub, printer)
}

// TestVerifiedOnce: the records of a device that does not answer are verified at the same time,
// in whatever order they expire, and not one after the other.
func TestVerifiedOnce(t *testing.T) {
	for range 20 { // the order is that of a map
		s := newSimulation(t, eth0)
		s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
		s.browse("_http._tcp")
		s.run(time.Minute)
		questions := s.questions
		s.interfaces()
		s.run(verifyWindow + time.Second)
		if links := len(s.machine.links); links != 0 {
			t.Fatalf("%d interfaces are left after %v", links, verifyWindow+time.Second)
		}
		if asked := s.questions - questions; asked < 4*20 || asked > 4*35 { // once a second for each record
			t.Fatalf("%d questions", asked)
		}
	}
}

// TestVerifiedAgain: after an interface has returned, its services get all the time again.
func TestVerifiedAgain(t *testing.T) {
	s := newSimulation(t, eth0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, printer)
	s.interfaces()
	s.run(verifyWindow - time.Second)
	s.interfaces(eth0)
	s.lost = func() bool { return true }
	s.run(verifyWindow - 5*time.Second)
	s.lost = func() bool { return false }
	s.run(time.Minute)
	s.expect(sub)
}

// TestMissingText: a service without a TXT record is listed, but later.
func TestMissingText(t *testing.T) {
	s := newSimulation(t, eth0)
	sub := s.browse("_http._tcp")
	s.run(5 * time.Second)
	s.expect(sub, "")
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	device.records = append(device.records[:3], device.records[4])
	s.announce(device, device.records...)
	s.run(textWait - 100*time.Millisecond)
	s.expect(sub)
	s.run(time.Second)
	s.expect(sub, printer)
	s.run(time.Hour)
	s.expect(sub)
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
