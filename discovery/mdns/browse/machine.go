package browse

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// machine decides what to ask and which services exist. Its owner tells it the time, the
// interfaces and the responses, and sends its questions. It is not safe for concurrent
// use.
type machine struct {
	random        *rand.Rand
	failed        func(reason, of, cause string)
	links         map[string]*link // by name of the interface
	subscriptions map[*subscription]bool
	// changed means that records, links or subscriptions have changed since the last sweep.
	changed bool
}

// subscription is a [Query] that is being answered.
type subscription struct {
	query Query
	names []wire.Name
	// ready is when the first list is complete.
	ready time.Time
	// last is the latest list; nil before the first one.
	last []Service
	// updates has the newest list that the caller has not seen.
	updates chan []Service
}

func newSubscription(query Query) (*subscription, error) {
	names, err := query.names()
	if err != nil {
		return nil, err
	}
	return &subscription{query: query, names: names, updates: make(chan []Service, 1)}, nil
}

func newMachine(random *rand.Rand, failed func(reason, of, cause string)) *machine {
	return &machine{random: random, failed: failed, links: map[string]*link{}, subscriptions: map[*subscription]bool{}}
}

// subscribe adds a subscription.
func (m *machine) subscribe(now time.Time, s *subscription) {
	s.ready = now
	if len(m.links) == 0 {
		s.ready = now.Add(settleTime)
	}
	for _, l := range m.links {
		if s.query.uses(l.inter) && !l.settled(now, s.names) {
			s.ready = now.Add(settleTime)
		}
	}
	m.subscriptions[s], m.changed = true, true
}

// unsubscribe removes a subscription.
func (m *machine) unsubscribe(s *subscription) {
	delete(m.subscriptions, s)
	m.changed = true
}

// uses reports whether a subscription uses an interface.
func (m *machine) uses(i Interface) bool {
	for s := range m.subscriptions {
		if s.query.uses(i) {
			return true
		}
	}
	return false
}

// settled reports whether names have been browsed for long enough to know the services.
func (l *link) settled(now time.Time, names []wire.Name) bool {
	return !slices.ContainsFunc(names, func(name wire.Name) bool {
		e := l.entries[setKey{name.Key(), wire.PTR}]
		return e == nil || now.Sub(e.since) < settleTime
	})
}

// setInterfaces sets which interfaces are used. The services of one that is gone are those
// of a network that does not answer: if it returns soon, they remain.
func (m *machine) setInterfaces(now time.Time, interfaces []Interface) {
	present := map[string]bool{}
	for _, i := range interfaces {
		present[i.Name] = true
		l := m.links[i.Name]
		switch {
		case l == nil:
			m.links[i.Name], m.changed = &link{inter: i, machine: m, entries: map[setKey]*entry{}}, true
		case l.absent || !reflect.DeepEqual(l.inter, i):
			l.absent, l.inter, m.changed = false, i, true
			l.restart(now)
		}
	}
	for name, l := range m.links {
		if !present[name] && !l.absent {
			l.absent = true
			l.restart(now)
		}
	}
}

// room reports whether a link may have one more record.
func (m *machine) room(l *link) bool {
	total := 0
	for _, other := range m.links {
		total += other.count
	}
	return total < maxRecords || l.count < maxRecords/len(m.links)
}

// receive stores what a response says.
func (m *machine) receive(now time.Time, inter string, records []wire.Record) {
	if l := m.links[inter]; l != nil {
		l.receive(now, records)
	}
}

// outgoing is a packet for the group of mDNS on an interface.
type outgoing struct {
	index  int
	packet []byte
}

// advance handles all that has happened until now, and publishes the lists that have changed.
// It returns the packets to send and when to call it next, at the latest; zero means never.
func (m *machine) advance(now time.Time) (packets []outgoing, next time.Time) {
	for _, l := range m.links {
		l.expire(now)
	}
	changed := m.changed
	m.changed = false
	for name, l := range m.links {
		if changed {
			l.sweep(now, m.browsed(l))
		}
		if l.absent && l.count == 0 {
			delete(m.links, name)
			continue
		}
		asked, at := l.ask(now)
		for _, packet := range asked {
			packets = append(packets, outgoing{l.inter.Index, packet})
		}
		next = deadline.Earliest(next, at)
	}
	for s := range m.subscriptions {
		switch {
		case s.last == nil && now.Before(s.ready):
			next = deadline.Earliest(next, s.ready)
		case s.last == nil || changed:
			m.publish(s)
		}
	}
	return packets, next
}

// publish makes the list of a subscription that of now.
func (m *machine) publish(s *subscription) {
	services := m.services(s)
	if s.last != nil && reflect.DeepEqual(services, s.last) {
		return
	}
	s.last = services
	select { // the newest list replaces one that was not read
	case <-s.updates:
	default:
	}
	s.updates <- services
}

// browsed returns the names to browse on a link.
func (m *machine) browsed(l *link) []wire.Name {
	var names []wire.Name
	for s := range m.subscriptions {
		if s.query.uses(l.inter) {
			names = append(names, s.names...)
		}
	}
	return names
}

// services returns the services of a subscription, sorted by key. If a service is found on
// several interfaces, that of the first interface by name counts, with the addresses of
// the others if they agree on host and port.
func (m *machine) services(s *subscription) []Service {
	found, addresses := map[string]*Service{}, map[string]map[netip.Addr]bool{}
	for _, name := range slices.Sorted(maps.Keys(m.links)) {
		l := m.links[name]
		if !s.query.uses(l.inter) {
			continue
		}
		for _, instance := range l.instances(s.names) {
			service, own := l.resolve(instance)
			key := instance.Key()
			switch former := found[key]; {
			case len(own) == 0:
			case former == nil:
				found[key], addresses[key] = &service, own
			case former.Host == service.Host && former.Port == service.Port:
				maps.Copy(addresses[key], own)
			}
		}
	}
	services := make([]Service, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		found[key].order(addresses[key])
		services = append(services, *found[key])
	}
	return services
}

// instances returns the names of the services that were announced for these names.
func (l *link) instances(browsed []wire.Name) []wire.Name {
	instances := map[wire.Name]wire.Name{} // by name in lower case
	var add func(name wire.Name)
	add = func(name wire.Name) {
		e := l.entries[setKey{name.Key(), wire.PTR}]
		if e == nil {
			return
		}
		for id, r := range e.records {
			switch first, seen := instances[id.Target]; {
			case e.types:
				add(r.data.Target) // it is not a list of types again, see acceptable
			case !seen || r.data.Target < first:
				instances[id.Target] = r.data.Target
			}
		}
	}
	for _, name := range browsed {
		add(name)
	}
	return slices.Sorted(maps.Values(instances))
}

// resolve returns the service of a name with its addresses. There are none until its host,
// port and address are known, and its TXT record, or that it has none.
func (l *link) resolve(instance wire.Name) (Service, map[netip.Addr]bool) {
	srv := l.entries[setKey{instance.Key(), wire.SRV}].best()
	text := l.entries[setKey{instance.Key(), wire.TXT}]
	labels := instance.Labels()
	if srv == nil || text == nil || len(text.records) == 0 && !text.late || len(labels) < 4 {
		return Service{}, nil
	}
	service := Service{
		Instance: labels[0], Type: labels[1] + "." + labels[2], Host: string(srv.data.Target), Port: srv.data.Port, name: instance,
	}
	if best := text.best(); best != nil {
		service.TXT = wire.ParseText(best.data.Text)
	}
	return service, l.addresses(srv.data.Target)
}

// addresses returns the addresses of a host, and whether each is in a network of the
// interface. Those that have been replaced count only if there is no other.
func (l *link) addresses(host wire.Name) map[netip.Addr]bool {
	current, former := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, kind := range []wire.Type{wire.A, wire.AAAA} {
		e := l.entries[setKey{host.Key(), kind}]
		if e == nil {
			continue
		}
		for _, r := range e.records {
			address := r.data.Address
			if address.Is6() && address.IsLinkLocalUnicast() {
				address = address.WithZone(l.inter.Name) // no network contains it
			}
			if r.final {
				former[address] = l.inter.contains(address)
			} else {
				current[address] = l.inter.contains(address)
			}
		}
	}
	if len(current) == 0 {
		return former
	}
	return current
}
