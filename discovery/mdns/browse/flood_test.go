package browse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// BenchmarkFlood measures a second in which as many packets arrive as are read, each of
// which changes ten of a thousand services. The time of an iteration is the share of a
// processor that anyone in the network can make the handler use.
func BenchmarkFlood(b *testing.B) {
	s := newSimulation(b, eth0)
	s.browse("_http._tcp")
	s.run(5 * time.Second)
	for i := range maxServices {
		d := s.service(eth0, fmt.Sprintf("Device %04d", i), "_http._tcp", "192.0.2.1")
		s.announce(d, d.records...)
	}
	s.run(time.Second)
	packets := make([][]byte, maxPacketsPerSecond)
	b.ResetTimer()
	for second := range b.N {
		b.StopTimer()
		for i := range packets {
			records := make([]wire.Record, 10)
			for j := range records {
				record := s.devices[(10*i+j)%maxServices].records[3]
				record.Text = formatText(fmt.Sprint("second=", second, " ", i), strings.Repeat("x", 60))
				records[j] = record
			}
			packets[i] = pack(b, records...)
		}
		for _, d := range s.devices {
			d.off = true
		}
		b.StartTimer()
		for i, packet := range packets {
			records, err := wire.ParseResponse(packet)
			if err != nil {
				b.Fatal(err)
			}
			s.machine.receive(s.now, "eth0", records)
			if i%(maxPacketsPerSecond/20) == 0 { // batchTime
				s.now = s.now.Add(batchTime)
				s.advance()
			}
		}
	}
}
