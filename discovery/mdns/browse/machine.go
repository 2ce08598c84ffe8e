package browse

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"net/netip"
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
	failed        func(reason string)
	links         map[int]*link // by index of the interface
	subscriptions map[*subscription]bool
	version       int // counts changes of services
}

// subscription is a [Query] that is being answered.
type subscription struct {
	query Query
	names []wire.Name
	// ready is when the first list is complete.
	ready time.Time
	// version is that of the machine when the list was last computed.
	version int
	// sent means that the first list was published, and last is the latest.
	sent bool
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

func newMachine(random *rand.Rand, failed func(string)) *machine {
	return &machine{random: random, failed: failed, links: map[int]*link{}, subscriptions: map[*subscription]bool{}}
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
	m.subscriptions[s] = true
	m.touch()
}

// unsubscribe removes a subscription.
func (m *machine) unsubscribe(s *subscription) {
	delete(m.subscriptions, s)
	m.touch()
}

// touch makes the next call of advance compute again what is needed.
func (m *machine) touch() {
	for _, l := range m.links {
		l.changed = true
	}
}

// settled reports whether names have been browsed for long enough to know the services.
func (l *link) settled(now time.Time, names []wire.Name) bool {
	return !slices.ContainsFunc(names, func(name wire.Name) bool {
		e := l.entries[setKey{name.Key(), wire.PTR}]
		return e == nil || now.Sub(e.since) < settleTime
	})
}

// setInterfaces sets which interfaces are used. The services of one that is gone are kept
// for some time, and verified when it returns.
func (m *machine) setInterfaces(now time.Time, interfaces []Interface) {
	present := map[int]bool{}
	for _, i := range interfaces {
		present[i.Index] = true
		l := m.links[i.Index]
		switch {
		case l == nil || l.inter.Name != i.Name:
			m.links[i.Index] = newLink(i, m.random, m.failed, m.room)
			m.touch()
		case !l.gone.IsZero() || l.inter != i:
			l.gone, l.inter, l.changed = time.Time{}, i, true
			l.restart(now)
		}
	}
	for index, l := range m.links {
		if !present[index] && l.gone.IsZero() {
			l.gone = now
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
func (m *machine) receive(now time.Time, index int, records []wire.Record) {
	if l := m.links[index]; l != nil && l.gone.IsZero() {
		l.receive(now, records)
	}
}

// outgoing is a packet for the group of mDNS on an interface.
type outgoing struct {
	index  int
	packet []byte
}

// advance handles all that has happened until now. It returns the packets to send and when
// to call it next, at the latest; zero means never.
func (m *machine) advance(now time.Time) (packets []outgoing, next time.Time) {
	for index, l := range m.links {
		if !l.gone.IsZero() {
			at := l.gone.Add(linkGrace)
			if now.Before(at) {
				next = deadline.Earliest(next, at)
				continue
			}
			delete(m.links, index)
			m.version++
			continue
		}
		l.expire(now)
		if l.changed {
			l.sweep(now, m.browsed(l))
			m.version++
		}
		asked, at := l.ask(now)
		for _, packet := range asked {
			packets = append(packets, outgoing{index, packet})
		}
		next = deadline.Earliest(next, at)
	}
	for s := range m.subscriptions {
		if !s.sent && now.Before(s.ready) {
			next = deadline.Earliest(next, s.ready)
		}
	}
	return packets, next
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

// update returns the list of a subscription, if it is complete and has changed.
func (m *machine) update(now time.Time, s *subscription) (services []Service, changed bool) {
	if s.sent && s.version == m.version || !s.sent && now.Before(s.ready) {
		return nil, false
	}
	s.version = m.version
	services = m.services(s)
	if s.sent && slices.EqualFunc(services, s.last, Service.equal) {
		return nil, false
	}
	s.sent, s.last = true, services
	return services, true
}

// services returns the services of a subscription, sorted by key. If a service is found on
// several interfaces, that of the first interface by name counts, with the addresses of
// the others if they agree on host and port.
func (m *machine) services(s *subscription) []Service {
	found := map[string]*Service{}
	links := slices.SortedFunc(maps.Values(m.links), func(a, b *link) int {
		return cmp.Or(cmp.Compare(a.inter.Name, b.inter.Name), cmp.Compare(a.inter.Index, b.inter.Index))
	})
	for _, l := range links {
		if !s.query.uses(l.inter) {
			continue
		}
		for _, instance := range l.instances(s.names) {
			service, ok := l.resolve(instance)
			if !ok {
				continue
			}
			former := found[instance.Key()]
			if former == nil {
				found[instance.Key()] = &service
				continue
			}
			former.Interfaces = append(former.Interfaces, service.Interfaces...)
			if former.Host == service.Host && former.Port == service.Port {
				former.Addresses = mergeAddresses(former.Addresses, service.Addresses)
			}
		}
	}
	services := make([]Service, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		services = append(services, *found[key])
	}
	return services
}

func mergeAddresses(a, b []netip.Addr) []netip.Addr {
	return slices.Compact(slices.SortedFunc(slices.Values(append(slices.Clone(a), b...)), compareAddresses))
}

// instances returns the names of the services that were announced for these names.
func (l *link) instances(browsed []wire.Name) []wire.Name {
	instances := map[string]wire.Name{}
	var add func(name wire.Name)
	add = func(name wire.Name) {
		e := l.entries[setKey{name.Key(), wire.PTR}]
		if e == nil {
			return
		}
		for id, r := range e.records {
			switch first, seen := instances[id.target]; {
			case e.types:
				add(r.data.Target) // it is not a list of types again, see acceptable
			case !seen || r.data.Target < first:
				instances[id.target] = r.data.Target
			}
		}
	}
	for _, name := range browsed {
		add(name)
	}
	return slices.Sorted(maps.Values(instances))
}

// resolve returns the service of a name. It is not ok until its host, port and address
// are known, and its TXT record, or that it has none.
func (l *link) resolve(instance wire.Name) (service Service, ok bool) {
	srv := l.entries[setKey{instance.Key(), wire.SRV}].best()
	text := l.entries[setKey{instance.Key(), wire.TXT}]
	if srv == nil || text == nil || len(text.records) == 0 && !text.late {
		return Service{}, false
	}
	addresses := l.addresses(srv.data.Target)
	if len(addresses) == 0 {
		return Service{}, false
	}
	labels := instance.Labels()
	if len(labels) < 4 {
		return Service{}, false
	}
	service = Service{
		Instance: labels[0], Type: labels[1] + "." + labels[2], Host: string(srv.data.Target), Port: srv.data.Port,
		Addresses: addresses, Interfaces: []string{l.inter.Name}, name: instance,
	}
	if best := text.best(); best != nil {
		service.TXT = wire.ParseText(best.data.Text)
	}
	return service, true
}

// addresses returns the addresses of a host. Those that have been replaced count only if
// there is no other.
func (l *link) addresses(host wire.Name) []netip.Addr {
	var current, replaced []netip.Addr
	for _, kind := range []wire.Type{wire.A, wire.AAAA} {
		e := l.entries[setKey{host.Key(), kind}]
		if e == nil {
			continue
		}
		for _, r := range e.records {
			address := r.data.Address
			if address.Is6() && address.IsLinkLocalUnicast() {
				address = address.WithZone(l.inter.Name)
			}
			if r.final {
				replaced = append(replaced, address)
			} else {
				current = append(current, address)
			}
		}
	}
	if len(current) == 0 {
		current = replaced
	}
	return mergeAddresses(current, nil)
}
