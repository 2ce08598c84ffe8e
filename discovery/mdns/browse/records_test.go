package browse

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// TestTimesToLive: very short and very long times to live count as the bounds.
func TestTimesToLive(t *testing.T) {
	for ttl, life := range map[uint32]time.Duration{2: minTTL, 365 * 24 * 3600: maxTTL} {
		s := newSimulation(t, eth0)
		device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
		for i := range device.records {
			device.records[i].TTL = ttl
		}
		sub := s.browse("_http._tcp")
		s.run(10 * time.Second)
		s.expect(sub, printer)
		device.off = true
		s.announce(device, device.records...)
		s.run(life + verifyWindow - time.Second)
		s.expect(sub)
		s.run(2 * time.Second)
		s.expect(sub, "")
	}
}

// TestSharedRecordsAreNotReplaced: a device that sets the cache-flush bit of its PTR record,
// which it must not, removes no other device.
func TestSharedRecordsAreNotReplaced(t *testing.T) {
	s := newSimulation(t, eth0)
	quiet := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	device := s.service(eth0, "Camera", "_http._tcp", "192.0.2.2", "model=X2")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, camera+"\n"+printer)
	quiet.off = true // so that it corrects nothing
	device.records[0].Flush = true
	s.announce(device, device.records[0])
	s.run(10 * time.Second)
	s.expect(sub)
}

// TestOtherServiceOfTheSameName: of two interfaces, the first one counts if they contradict
// each other.
func TestOtherServiceOfTheSameName(t *testing.T) {
	s := newSimulation(t, eth0, wlan0)
	s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	s.service(wlan0, "Printer", "_http._tcp", "198.51.100.1").records[2].Port = 8080
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, printer)
}

// TestOtherNetwork: an interface that gets into another network loses the services of the
// former one before their records expire.
func TestOtherNetwork(t *testing.T) {
	s := newSimulation(t, eth0)
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, printer)
	device.off = true
	moved := inNetwork(eth0, "eth0")
	moved.Networks = []netip.Prefix{netip.MustParsePrefix("198.51.100.254/24")}
	s.machine.setInterfaces(s.now, []Interface{moved})
	s.wake = s.now
	s.run(verifyWindow + time.Second)
	if lists := s.lists[sub]; len(lists) == 0 || lists[len(lists)-1] != "" {
		t.Errorf("afterwards, the lists are %q", lists)
	}
}

// TestTypesAreBounded has more types of services than are browsed.
func TestTypesAreBounded(t *testing.T) {
	s := newSimulation(t, eth0)
	s.browse(AllTypes)
	s.run(5 * time.Second)
	for i := range maxTypes + 10 {
		s.announce(&simulatedDevice{index: eth0}, wire.Record{
			Name: "_services._dns-sd._udp.local", Type: wire.PTR, TTL: 4500, Target: wire.Name(fmt.Sprintf("_type%d._tcp.local", i)),
		})
	}
	s.run(time.Second)
	if entries := len(s.machine.links["eth0"].entries); entries != maxTypes+1 || s.failures[FailedFull] != 10 {
		t.Errorf("%d entries, failures %v", entries, s.failures)
	}
}

// TestUnreadLists: the newest list replaces one that was not read.
func TestUnreadLists(t *testing.T) {
	s := newSimulation(t, eth0)
	sub := s.browse("_http._tcp")
	s.run(time.Minute)
	s.expect(sub, "")
	sub.updates <- []Service{}
	device := s.service(eth0, "Printer", "_http._tcp", "192.0.2.1")
	s.announce(device, device.records...)
	s.run(time.Second)
	s.expect(sub, printer)
}
