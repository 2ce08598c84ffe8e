package browse

import (
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// ask returns the packets with the questions that are due, and when to call it next.
func (l *link) ask(now time.Time) (packets [][]byte, next time.Time) {
	if next = l.next(); !next.After(now) && !now.Before(l.ready) {
		packets = l.pack(now)
		l.ready, next = now.Add(sendInterval), l.next()
	}
	if !next.IsZero() {
		next = deadline.Latest(next, l.ready)
	}
	return packets, next
}

func (l *link) next() (next time.Time) {
	for _, e := range l.entries {
		next = deadline.Earliest(next, e.next())
	}
	return next
}

// isDue reports whether to ask for the records of an entry, because of its schedule or
// because one of its records expires soon.
func (e *entry) isDue(now time.Time) bool {
	if e.asking() && !e.due.After(now) {
		return true
	}
	for _, r := range e.records {
		if r.isDue(now) {
			return true
		}
	}
	return false
}

// pack makes packets with the questions that are due, and with the answers that are known
// to the questions for services.
func (l *link) pack(now time.Time) (packets [][]byte) {
	query := wire.NewQuery()
	for _, e := range l.entries {
		if len(packets) >= maxSendBurst {
			break
		}
		if !e.isDue(now) {
			continue
		}
		if known := e.known(now); len(known) > 0 {
			packets = append(packets, chain(e, now, known)...)
		} else if !query.Ask(e.name, e.kind) {
			packets = append(packets, query.Pack())
			query = wire.NewQuery()
			query.Ask(e.name, e.kind)
		}
		l.asked(now, e)
	}
	if !query.Empty() {
		packets = append(packets, query.Pack())
	}
	return packets
}

// asked plans the next question about an entry.
func (l *link) asked(now time.Time, e *entry) {
	if e.asking() && !e.due.After(now) {
		e.asked++
		interval := e.interval()
		if e.asked > 2 { // nodes that were started together drift apart
			interval += time.Duration(.05 * l.machine.random.Float64() * float64(interval))
		}
		e.due = now.Add(interval)
	}
	var latest time.Time
	for _, r := range e.records {
		r.asked(now)
		latest = deadline.Latest(latest, r.received)
	}
	for _, r := range e.records {
		answered := e.kind != wire.PTR && latest.Sub(r.received) > goodbyeDelay // but not with this record
		if answered && !r.final && r.attempts >= len(points)+maxUnanswered {
			r.end(now)
			l.machine.changed = true
		}
	}
}

// known returns the PTR records that need not be repeated.
func (e *entry) known(now time.Time) (known []*cachedRecord) {
	for _, r := range e.records {
		if e.kind == wire.PTR && r.known(now) {
			known = append(known, r)
		}
	}
	return known
}

// chain returns the question for an entry with the answers that are known, in as many
// packets as they need (RFC 6762, 7.2).
func chain(e *entry, now time.Time, known []*cachedRecord) (packets [][]byte) {
	query := wire.NewQuery()
	query.Ask(e.name, e.kind)
	for _, r := range known {
		ttl := uint32(r.expires.Sub(now) / time.Second)
		if !query.Know(e.name, r.data.Target, ttl) {
			query.Truncate()
			packets = append(packets, query.Pack())
			query = wire.NewQuery()
			query.Know(e.name, r.data.Target, ttl)
		}
	}
	return append(packets, query.Pack())
}
