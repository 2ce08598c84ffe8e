package browse

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// announceMany lets a machine receive many services on an interface.
func announceMany(t *testing.T, m *machine, now time.Time, index, count int, text string) {
	t.Helper()
	for i := range count {
		host := wire.Name(fmt.Sprintf("host%d-%d.local", index, i))
		name := wire.Name(fmt.Sprintf("service%d-%d._http._tcp.local", index, i))
		m.receive(now, fmt.Sprint("eth", index), []wire.Record{
			{Name: "_http._tcp.local", Type: wire.PTR, TTL: 4500, Target: name},
			{Name: name, Type: wire.SRV, TTL: 120, Target: host, Port: 80},
			{Name: name, Type: wire.TXT, TTL: 4500, Text: formatText("a=" + strings.Clone(text))},
			{Name: host, Type: wire.A, TTL: 120, Address: netip.AddrFrom4([4]byte{192, 0, 2, 1})},
		})
	}
}

// TestCacheOfManyInterfaces checks that the records of all interfaces are bounded, and that
// networks that announce much leave place for those of others.
func TestCacheOfManyInterfaces(t *testing.T) {
	text := strings.Repeat("x", 250)
	const interfaces = 32
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := newMachine(rand.New(rand.NewPCG(1, 2)), func(string, string, string) {})
	var list []Interface
	for index := 1; index <= interfaces; index++ {
		list = append(list, inNetwork(index, fmt.Sprint("eth", index)))
	}
	m.setInterfaces(now, list)
	s, err := newSubscription(Query{Types: []string{"_http._tcp"}, Interfaces: func(i Interface) bool { return i.Index == interfaces }})
	if err != nil {
		t.Fatal(err)
	}
	all, err := newSubscription(Query{Types: []string{"_http._tcp"}})
	if err != nil {
		t.Fatal(err)
	}
	m.subscribe(now, s)
	m.subscribe(now, all)
	m.advance(now)
	for index := 1; index < interfaces; index++ {
		announceMany(t, m, now, index, maxServices, text)
	}
	m.advance(now)
	announceMany(t, m, now, interfaces, 60, text) // the last to come
	m.advance(now)
	if found := len(m.services(s)); found != 60 {
		t.Errorf("%d services of the last network, want 60", found)
	}
}
