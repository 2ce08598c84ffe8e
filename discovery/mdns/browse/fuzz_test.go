package browse

import (
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// FuzzMachine feeds a machine with packets of a hostile network, while time passes. The
// input is a list of packets, each after a byte with its length and one with the time
// since the previous one.
func FuzzMachine(f *testing.F) {
	device := newSimulation(f).service(eth0, "Printer", "_http._tcp", "192.0.2.1", "a=b")
	var seed []byte
	for _, record := range device.records {
		for _, ttl := range []uint32{120, 1, 0} {
			record.TTL = ttl
			packet := pack(f, record)
			seed = append(append(seed, byte(len(packet)), byte(ttl)), packet...)
		}
	}
	f.Add(seed, false)
	f.Add(seed, true)
	f.Fuzz(func(t *testing.T, input []byte, all bool) {
		s := newSimulation(t, eth0)
		types := []string{"_http._tcp", "_x._sub._http._tcp"}
		if all {
			types = append(types, AllTypes)
		}
		sub := s.browse(types...)
		for len(input) > 2 {
			length, pause := int(input[0]), time.Duration(input[1])*time.Second/16
			packet := input[2:]
			packet = packet[:min(length, len(packet))]
			input = input[2+len(packet):]
			records, _ := wire.ParseResponse(packet)
			s.machine.receive(s.now, "eth0", records)
			s.wake = deadline.Earliest(s.wake, s.now.Add(batchTime))
			s.run(pause)
		}
		s.run(time.Minute)
		s.checkLink(s.machine.links["eth0"])
		s.machine.unsubscribe(sub)
		s.advance()
		if l := s.machine.links["eth0"]; len(l.entries) != 0 || l.count != 0 {
			t.Fatalf("left: %d entries, %d records", len(l.entries), l.count)
		}
	})
}

// checkLink checks what must hold for the cache of a link at any time.
func (s *simulation) checkLink(l *link) {
	s.t.Helper()
	count := 0
	for k, e := range l.entries {
		if k.name != e.name.Key() || len(e.records) > e.capacity() {
			s.t.Fatalf("entry %v: %d records", k, len(e.records))
		}
		for id, r := range e.records {
			count++
			if identify(r.data) != id || r.data.Name.Key() != k.name {
				s.t.Fatalf("entry %v has the record %+v", k, r.data)
			}
			if end := r.removal().Sub(s.now); end <= 0 || end > maxTTL+verifyWindow {
				s.t.Fatalf("a record remains for %v", end)
			}
		}
	}
	if count != l.count || count > maxRecords {
		s.t.Fatalf("%d records, but counted %d", count, l.count)
	}
}
