package browse

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// simulation is a machine in a network of simulated devices, with a clock of its own.
type simulation struct {
	t         testing.TB
	now       time.Time
	machine   *machine
	devices   []*simulatedDevice
	up        map[int]bool // interfaces
	lost      func() bool
	random    *rand.Rand
	pending   []delivery
	questions int
	packets   int
	known     int // answers that queries say are known
	ipv6      int // questions for AAAA records
	truncated int // queries whose known answers go on in the next packet
	failures  map[string]int
	// lists has each published list, as text.
	lists map[*subscription][]string
	wake  time.Time
}

// delivery is a response on its way.
type delivery struct {
	at      time.Time
	index   int
	records []wire.Record
}

// simulatedDevice answers as RFC 6762 requires: with what is not known, and each record at most once
// a second.
type simulatedDevice struct {
	index   int
	records []wire.Record
	off     bool
	sent    map[int]time.Time // by index in records
}

const eth0, wlan0 = 2, 3

var interfaceNames = map[int]string{eth0: "eth0", wlan0: "wlan0"}

func newSimulation(t testing.TB, indexes ...int) *simulation {
	random := rand.New(rand.NewPCG(1, 2))
	s := &simulation{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), random: random, lost: func() bool { return false },
		failures: map[string]int{}, lists: map[*subscription][]string{},
	}
	s.machine = newMachine(random, func(reason, _, _ string) { s.failures[reason]++ })
	s.interfaces(indexes...)
	return s
}

func (s *simulation) interfaces(indexes ...int) {
	var list []Interface
	s.up = map[int]bool{}
	for _, index := range indexes {
		s.up[index] = true
		list = append(list, inNetwork(index, interfaceNames[index]))
	}
	s.machine.setInterfaces(s.now, list)
	s.wake = s.now
}

// inNetwork returns an interface with an IPv4 address.
func inNetwork(index int, name string) Interface {
	return Interface{Index: index, Name: name, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.254/24")}}
}

func (s *simulation) browse(types ...string) *subscription {
	s.t.Helper()
	subscribed, err := newSubscription(Query{Types: types})
	if err != nil {
		s.t.Fatal(err)
	}
	s.machine.subscribe(s.now, subscribed)
	s.wake = s.now
	return subscribed
}

// service adds a device with one service: TTLs are those of avahi and others.
func (s *simulation) service(index int, instance, kind, address string, text ...string) *simulatedDevice {
	host := wire.Name(strings.ToLower(strings.ReplaceAll(instance, " ", "-")) + ".local")
	typeName := wire.Name(kind + ".local")
	name := wire.NewName(instance) + "." + typeName
	d := &simulatedDevice{index: index, sent: map[int]time.Time{}, records: []wire.Record{
		{Name: typeName, Type: wire.PTR, TTL: 4500, Target: name},
		{Name: "_services._dns-sd._udp.local", Type: wire.PTR, TTL: 4500, Target: typeName},
		{Name: name, Type: wire.SRV, TTL: 120, Flush: true, Target: host, Port: 80},
		{Name: name, Type: wire.TXT, TTL: 4500, Flush: true, Text: formatText(text...)},
		{Name: host, Type: wire.A, TTL: 120, Flush: true, Address: netip.MustParseAddr(address)},
	}}
	s.devices = append(s.devices, d)
	return d
}

// announce sends records of a device to all.
func (s *simulation) announce(d *simulatedDevice, records ...wire.Record) {
	s.deliver(d.index, records, 0)
}

// goodbye announces the end of all records.
func (s *simulation) goodbye(d *simulatedDevice) {
	d.off = true
	records := slices.Clone(d.records)
	for i := range records {
		records[i].TTL = 0
	}
	s.deliver(d.index, records, 0)
}

// deliver sends records in packets of the usual size, unless they are lost.
func (s *simulation) deliver(index int, records []wire.Record, delay time.Duration) {
	s.t.Helper()
	for some := range slices.Chunk(records, recordsPerPacket) {
		if s.lost() || !s.up[index] {
			continue
		}
		received, err := wire.ParseResponse(pack(s.t, some...))
		if err != nil {
			s.t.Fatal(err)
		}
		s.pending = append(s.pending, delivery{s.now.Add(delay), index, received})
	}
	slices.SortStableFunc(s.pending, func(a, b delivery) int { return a.at.Compare(b.at) })
}

// run lets time pass. It jumps from event to event.
func (s *simulation) run(duration time.Duration) {
	s.t.Helper()
	for end, steps := s.now.Add(duration), 0; ; steps++ {
		if steps > 2_000_000 {
			s.t.Fatal("the machine is busy: more than 2,000,000 steps")
		}
		next := s.wake
		if len(s.pending) > 0 {
			next = deadline.Earliest(next, s.pending[0].at)
		}
		if next.IsZero() || next.After(end) {
			s.now = end
			return
		}
		if next.After(s.now) {
			s.now = next
		}
		for len(s.pending) > 0 && !s.pending[0].at.After(s.now) {
			s.machine.receive(s.now, interfaceNames[s.pending[0].index], s.pending[0].records)
			s.pending = s.pending[1:]
			s.wake = deadline.Earliest(s.wake, s.now.Add(batchTime))
		}
		if !s.wake.IsZero() && !s.wake.After(s.now) {
			s.advance()
		}
	}
}

func (s *simulation) advance() {
	packets, wake := s.machine.advance(s.now)
	if wake = deadline.Latest(wake, s.now.Add(batchTime)); !wake.After(s.now) {
		s.t.Fatal("time stands still")
	}
	s.wake = wake
	for _, p := range packets {
		s.packets++
		asked, err := parseQuery(p.packet)
		if err != nil {
			s.t.Fatal(err)
		}
		s.questions += len(asked.wanted)
		s.known += len(asked.known)
		if asked.truncated {
			s.truncated++
		}
		for key := range asked.wanted {
			if key.kind == wire.AAAA {
				s.ipv6++
			}
		}
		if !s.lost() && s.up[p.index] {
			s.answer(p.index, asked)
		}
	}
	for subscribed := range s.machine.subscriptions {
		select {
		case services := <-subscribed.updates:
			s.lists[subscribed] = append(s.lists[subscribed], describe(services))
		default:
		}
	}
}

func (s *simulation) answer(index int, asked query) {
	for _, d := range s.devices {
		if d.index != index || d.off {
			continue
		}
		var answers []wire.Record
		for i, record := range d.records {
			if !asked.wanted[setKey{record.Name.Key(), record.Type}] || asked.known[record.Name+" "+record.Target] >= record.TTL/2 {
				continue
			}
			if s.now.Sub(d.sent[i]) >= time.Second {
				d.sent[i] = s.now
				answers = append(answers, record)
			}
		}
		s.deliver(index, answers, 20*time.Millisecond+time.Duration(s.random.Int64N(int64(100*time.Millisecond))))
	}
}

// describe returns a list as text: a line for each service.
func describe(services []Service) string {
	var lines []string
	for _, service := range services {
		line := fmt.Sprintf("%s %s:%d %v", service.name, service.Host, service.Port, service.Addresses)
		for _, pair := range service.TXT {
			line += " " + pair.Key + "=" + pair.Value
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// expect fails unless these lists were published since the last call, in this order.
func (s *simulation) expect(subscribed *subscription, want ...string) {
	s.t.Helper()
	if got := s.lists[subscribed]; !slices.Equal(got, want) {
		s.t.Fatalf("after %v, the lists are\n%q\nwant\n%q", s.now.Format("15:04:05.000"), got, want)
	}
	s.lists[subscribed] = nil
}
