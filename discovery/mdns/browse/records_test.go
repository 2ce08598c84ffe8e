package browse

import (
	"fmt"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

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
