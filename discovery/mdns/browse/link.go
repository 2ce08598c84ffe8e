package browse

import (
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// link is the cache of one interface, with the questions that keep it up to date. It is
// not safe for concurrent use, and has neither clock nor network.
type link struct {
	inter   Interface
	machine *machine
	entries map[setKey]*entry
	// count is that of all records.
	count int
	// sweeps counts them.
	sweeps int
	// absent means that the interface is gone: questions fail, and its records expire.
	absent bool
	// ready is when packets may be sent again.
	ready time.Time
}

// passes are the types of records in the order in which they lead to each other.
var passes = [][2]wire.Type{{wire.PTR, wire.PTR}, {wire.SRV, wire.TXT}, {wire.A, wire.AAAA}}

// receive stores the records of a response that are needed.
func (l *link) receive(now time.Time, records []wire.Record) {
	for _, kinds := range passes {
		for _, data := range records {
			if data.Type == kinds[0] || data.Type == kinds[1] {
				l.store(now, data)
			}
		}
	}
	for _, data := range records {
		if data.TTL > 0 {
			l.replace(now, data)
		}
	}
}

// store adds, renews or ends a record. It ignores records that nobody needs: without
// that, the cache could be filled with anything.
func (l *link) store(now time.Time, data wire.Record) {
	e := l.entries[setKey{data.Name.Key(), data.Type}]
	if e == nil || !acceptable(e, data) {
		return
	}
	id := identify(data)
	r := e.records[id]
	if data.TTL == 0 {
		if r != nil {
			r.end(now)
			l.machine.changed = true
		}
		return
	}
	if r == nil {
		if len(e.records) >= e.capacity() || len(data.Text) > maxTextBytes || !l.machine.room(l) {
			l.machine.failed(FailedFull, e.name.Key(), "there are too many records, or its TXT record is too long")
			return
		}
		r = &cachedRecord{data: data, created: now, jitter: .02 * l.machine.random.Float64()}
		e.records[id] = r
		l.count++
		l.machine.changed = true
	}
	if r.final {
		l.machine.changed = true
	}
	r.renew(now, data)
	l.follow(now, e, r)
}

// acceptable reports whether a record makes sense for its entry.
func acceptable(e *entry, data wire.Record) bool {
	switch data.Type {
	case wire.PTR:
		if e.types {
			return isType(data.Target) && data.Target.Parent().Parent().Key() == e.name.Parent().Parent().Parent().Key()
		}
		return data.Target.Parent().Key() == serviceType(e.name).Key()
	case wire.SRV:
		return data.Target != "" && data.Port != 0
	case wire.TXT:
		return true
	default:
		return usable(data.Address)
	}
}

// replace ends the records that a record with the cache-flush bit replaces. Those of the last
// second may be in an earlier packet of the same answer. Without the bit, the others are
// verified: some devices never set it, also when they get another address.
func (l *link) replace(now time.Time, data wire.Record) {
	e := l.entries[setKey{data.Name.Key(), data.Type}]
	if e == nil || e.kind == wire.PTR { // PTR records of types are shared by all devices
		return
	}
	for _, r := range e.records {
		switch {
		case now.Sub(r.received) <= goodbyeDelay || r.final:
		case data.Flush:
			r.end(now)
			l.machine.changed = true
		default:
			r.verify(now)
		}
	}
}

// follow visits what a record leads to.
func (l *link) follow(now time.Time, e *entry, r *cachedRecord) {
	target := r.data.Target
	switch {
	case e.types:
		l.visit(now, target, wire.PTR)
	case e.kind == wire.PTR:
		l.visit(now, target, wire.SRV)
		l.visit(now, target, wire.TXT)
	case e.kind == wire.SRV:
		l.visit(now, target, wire.A)
		l.visit(now, target, wire.AAAA)
	}
}

// visit marks the entry of a name, which it creates if it does not exist, and all that its
// records lead to, as needed.
func (l *link) visit(now time.Time, name wire.Name, kind wire.Type) {
	k := setKey{name.Key(), kind}
	e := l.entries[k]
	switch {
	case e == nil:
		e = &entry{name: name, kind: kind, records: map[wire.Record]*cachedRecord{}, types: kind == wire.PTR && isEnumeration(name), since: now}
		e.due = now.Add(l.firstDelay())
		l.entries[k] = e
	case e.sweep == l.sweeps:
		return
	}
	e.sweep = l.sweeps
	for _, r := range e.records {
		l.follow(now, e, r)
	}
}

// firstDelay keeps nodes from asking in the same instant (RFC 6762, 5.2), and lets
// records that are about to arrive come first.
func (l *link) firstDelay() time.Duration {
	return 20*time.Millisecond + time.Duration(l.machine.random.Int64N(int64(100*time.Millisecond)))
}

// sweep removes all entries that do not follow from what is browsed.
func (l *link) sweep(now time.Time, browsed []wire.Name) {
	l.sweeps++
	for _, name := range browsed {
		l.visit(now, name, wire.PTR)
	}
	for k, e := range l.entries {
		if e.sweep != l.sweeps {
			l.count -= len(e.records)
			delete(l.entries, k)
		}
	}
}

// expire removes records whose time is over.
func (l *link) expire(now time.Time) {
	for _, e := range l.entries {
		for id, r := range e.records {
			if now.Before(r.removal()) {
				continue
			}
			delete(e.records, id)
			l.count--
			l.machine.changed = true
			if len(e.records) == 0 && e.kind != wire.PTR {
				e.asked, e.due = 0, now
				l.doubt(now, e)
			}
		}
		if e.kind == wire.TXT && !e.late && len(e.records) == 0 && !now.Before(e.since.Add(textWait)) {
			e.late, l.machine.changed = true, true
		}
	}
}

// doubt verifies the records that lead to an entry whose last record has expired: the
// device was probably switched off without a goodbye.
func (l *link) doubt(now time.Time, lost *entry) {
	leading := wire.PTR
	switch lost.kind {
	case wire.A, wire.AAAA:
		leading = wire.SRV
	case wire.SRV:
	default:
		return
	}
	name := lost.name.Key()
	for _, e := range l.entries {
		if e.kind != leading {
			continue
		}
		for id, r := range e.records {
			if id.Target.Key() == name {
				r.verify(now)
			}
		}
	}
}

// restart asks for services as if browsing had just begun, and verifies all records, since
// the interface has changed, is gone or was away.
func (l *link) restart(now time.Time) {
	for _, e := range l.entries {
		if e.kind == wire.PTR {
			e.asked, e.due = 0, now.Add(l.firstDelay())
		}
		for _, r := range e.records {
			r.attempts = 0
			r.verify(now)
		}
	}
}
