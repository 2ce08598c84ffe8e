package browse

import (
	"math/rand/v2"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// Reasons for [Options.Failed].
const (
	// FailedMalformed: a packet is not a message.
	FailedMalformed = "malformed_packet"
	// FailedForeign: a response comes from another port than 5353, or from an address
	// outside the networks of the interface.
	FailedForeign = "foreign_packet"
	// FailedRate: more packets arrive than are read.
	FailedRate = "rate_limited"
	// FailedFull: there are more services or records than are kept.
	FailedFull = "cache_full"
	// FailedSend: a question cannot be sent.
	FailedSend = "send"
	// FailedInterface: an interface cannot be used.
	FailedInterface = "interface"
)

// link is the cache of one interface, with the questions that keep it up to date. It is
// not safe for concurrent use, and has neither clock nor network.
type link struct {
	inter  Interface
	random *rand.Rand
	failed func(reason string)
	// room reports whether the cache of all interfaces has room for a record of this size.
	room    func(l *link, size int) bool
	entries map[setKey]*entry
	// count and bytes are the sums over all records.
	count, bytes int
	// generation counts the sweeps; marks has the last one that needed an entry. It is
	// negative for types of services whose records have been followed, too.
	generation int
	marks      map[*entry]int
	// changed means that records have come, gone or been replaced since the last sweep.
	changed bool
	// gone is when the interface was removed; zero if it exists.
	gone time.Time
	// ready is when packets may be sent again.
	ready time.Time
}

func newLink(inter Interface, random *rand.Rand, failed func(string), room func(*link, int) bool) *link {
	return &link{
		inter: inter, random: random, failed: failed, room: room,
		entries: map[setKey]*entry{}, generation: 1, marks: map[*entry]int{},
	}
}

// memory returns what the records take of the cache.
func (l *link) memory() int { return l.bytes + l.count*recordBytes }

// evict removes any record. It returns the memory that this frees.
func (l *link) evict() int {
	before := l.memory()
	for _, e := range l.entries {
		for id, r := range e.records {
			delete(e.records, id)
			l.forget(r)
			l.changed = true
			return before - l.memory()
		}
	}
	return 0
}

// passes are the types of records in the order in which they lead to each other.
var passes = [][2]wire.Type{{wire.PTR, wire.PTR}, {wire.SRV, wire.TXT}, {wire.A, wire.AAAA}}

// receive stores the records of a response that are needed.
func (l *link) receive(now time.Time, message wire.Message) {
	for _, kinds := range passes {
		for _, data := range message.Records {
			if data.Type == kinds[0] || data.Type == kinds[1] {
				l.store(now, data)
			}
		}
	}
	for _, data := range message.Records {
		if data.Flush && data.TTL > 0 {
			l.flush(now, data)
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
			l.changed = true
		}
		return
	}
	if r == nil {
		if len(e.records) >= e.capacity() || l.count >= maxRecords || l.bytes+size(data) > maxRecordBytes ||
			!l.room(l, size(data)) {
			l.failed(FailedFull)
			return
		}
		r = &cachedRecord{data: data, created: now, jitter: .02 * l.random.Float64()}
		e.records[id] = r
		l.count++
		l.bytes += size(data)
		l.changed = true
	}
	if r.final {
		l.changed = true
	}
	r.renew(now, data)
	l.follow(now, e, r)
}

// acceptable reports whether a record makes sense for its entry.
func acceptable(e *entry, data wire.Record) bool {
	switch data.Type {
	case wire.PTR:
		if e.types {
			labels, domain := data.Target.Labels(), e.name.Parent().Parent().Parent()
			return len(labels) > 2 && wire.IsServiceType(labels[:2]) && data.Target.Parent().Parent().Key() == domain.Key()
		}
		return data.Target.Parent().Key() == serviceType(e.name).Key()
	case wire.SRV:
		return data.Target != "" && data.Port != 0
	case wire.TXT:
		return len(data.Text) <= maxTextBytes
	default:
		return usable(data.Address)
	}
}

// flush ends the records that a record with the cache-flush bit replaces. Those of the last
// second may be in an earlier packet of the same answer.
func (l *link) flush(now time.Time, data wire.Record) {
	e := l.entries[setKey{data.Name.Key(), data.Type}]
	if e == nil || e.kind == wire.PTR { // PTR records of types are shared by all devices
		return
	}
	for _, r := range e.records {
		if now.Sub(r.received) > goodbyeDelay && !r.final {
			r.end(now)
			l.changed = true
		}
	}
}

// follow makes the entries that a record leads to.
func (l *link) follow(now time.Time, e *entry, r *cachedRecord) {
	target := r.data.Target
	switch {
	case e.types:
		l.browse(now, target)
	case e.kind == wire.PTR:
		l.visit(now, target, wire.TXT, required)
		if srv := l.visit(now, target, wire.SRV, required); len(srv.records) > 0 {
			l.follow(now, srv, srv.best())
		}
	case e.kind == wire.SRV:
		a, aaaa := l.visit(now, target, wire.A, required), l.visit(now, target, wire.AAAA, required)
		if len(a.records) > 0 {
			aaaa.need = optional
		}
		if len(aaaa.records) > 0 {
			a.need = optional
		}
	}
}

// browse makes the entry of a type of services, and all that it leads to.
func (l *link) browse(now time.Time, name wire.Name) {
	e := l.visit(now, name, wire.PTR, continuous)
	if l.marks[e] == -l.generation {
		return // done in this sweep
	}
	l.marks[e] = -l.generation
	for _, r := range e.records {
		l.follow(now, e, r)
	}
}

// visit returns the entry, which it creates if it does not exist, and marks it as needed.
func (l *link) visit(now time.Time, name wire.Name, kind wire.Type, why need) *entry {
	k := setKey{name.Key(), kind}
	e := l.entries[k]
	if e == nil {
		e = &entry{name: name, kind: kind, records: map[identity]*cachedRecord{}, types: kind == wire.PTR && isEnumeration(name), since: now}
		e.due = now.Add(l.firstDelay())
		l.entries[k] = e
	}
	e.need = why
	if l.marks[e] != -l.generation {
		l.marks[e] = l.generation
	}
	return e
}

// firstDelay keeps nodes from asking in the same instant (RFC 6762, 5.2), and lets
// records that are about to arrive come first.
func (l *link) firstDelay() time.Duration {
	return 20*time.Millisecond + time.Duration(l.random.Int64N(int64(100*time.Millisecond)))
}

// sweep removes all entries that do not follow from what is browsed.
func (l *link) sweep(now time.Time, browsed []wire.Name) {
	l.generation++
	for _, name := range browsed {
		l.browse(now, name)
	}
	for k, e := range l.entries {
		if mark := l.marks[e]; mark != l.generation && mark != -l.generation {
			for _, r := range e.records {
				l.forget(r)
			}
			delete(l.entries, k)
			delete(l.marks, e)
		}
	}
	l.changed = false
}

func (l *link) forget(r *cachedRecord) {
	l.count--
	l.bytes -= size(r.data)
}

// expire removes records whose time is over.
func (l *link) expire(now time.Time) {
	for _, e := range l.entries {
		for id, r := range e.records {
			if now.Before(r.removal()) {
				continue
			}
			delete(e.records, id)
			l.forget(r)
			l.changed = true
			if len(e.records) == 0 && e.need != continuous {
				e.asked, e.due = 0, now
				l.doubt(now, e)
			}
		}
		if e.kind == wire.TXT && !e.late && len(e.records) == 0 && !now.Before(e.since.Add(textWait)) {
			e.late, l.changed = true, true
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
	for _, e := range l.entries {
		if e.kind != leading {
			continue
		}
		for id, r := range e.records {
			if id.target == lost.name.Key() {
				r.verify(now)
			}
		}
	}
}

// restart asks for services as if browsing had just begun, since the interface has changed.
func (l *link) restart(now time.Time) {
	for _, e := range l.entries {
		if e.need == continuous {
			e.asked, e.due = 0, now.Add(l.firstDelay())
		}
	}
}

// verifyAll verifies all records, since the interface was away.
func (l *link) verifyAll(now time.Time) {
	for _, e := range l.entries {
		for _, r := range e.records {
			r.verify(now)
		}
	}
}
