package browse

import (
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// ask returns the packets with the questions that are due, and when to call it next.
func (l *link) ask(now time.Time) (packets [][]byte, next time.Time) {
	if now.Before(l.ready) {
		return nil, l.ready
	}
	if l.isDue(now) {
		packets = l.pack(now)
		l.ready = now.Add(time.Duration(len(packets)) * sendInterval)
	}
	for _, e := range l.entries {
		next = deadline.Earliest(next, e.next())
	}
	if !next.IsZero() && next.Before(l.ready) {
		next = l.ready
	}
	return packets, next
}

func (l *link) isDue(now time.Time) bool {
	for _, e := range l.entries {
		if e.isDue(now, 0) {
			return true
		}
	}
	return false
}

// isDue reports whether to ask for the records of an entry, because of its schedule or
// because one of its records expires.
func (e *entry) isDue(now time.Time, lookahead time.Duration) bool {
	if e.asking() && !e.due.After(now) {
		return true
	}
	for _, r := range e.records {
		if !r.refresh.IsZero() && !r.refresh.After(now.Add(lookahead)) {
			return true
		}
	}
	return false
}

// pack makes packets with the questions that are due, and with the answers that are known
// to the questions for services.
func (l *link) pack(now time.Time) (packets [][]byte) {
	builder := wire.NewQuery()
	for _, e := range l.entries {
		if len(packets) >= maxSendBurst {
			break
		}
		if !e.isDue(now, lookahead) {
			continue
		}
		question := wire.Question{Name: e.name, Type: e.kind}
		if known := e.knownAnswers(now); len(known) > 0 {
			packets = append(packets, chain(question, known)...)
		} else if !builder.Question(question) {
			packets = append(packets, builder.Bytes())
			builder = wire.NewQuery()
			builder.Question(question)
		}
		l.asked(now, e)
	}
	if !builder.Empty() {
		packets = append(packets, builder.Bytes())
	}
	return packets
}

// asked plans the next question about an entry.
func (l *link) asked(now time.Time, e *entry) {
	if e.asking() && !e.due.After(now) {
		e.asked++
		interval := e.interval()
		if e.asked > 2 { // nodes that were started together drift apart
			interval += time.Duration(.05 * l.random.Float64() * float64(interval))
		}
		e.due = now.Add(interval)
	}
	for _, r := range e.records {
		r.asked(now)
	}
}

// knownAnswers returns the records that need not be repeated.
func (e *entry) knownAnswers(now time.Time) []wire.Record {
	if e.need != continuous {
		return nil
	}
	var known []wire.Record
	for _, r := range e.records {
		if r.known(now) {
			data := r.data
			data.Flush, data.TTL = false, uint32(r.expires.Sub(now)/time.Second)
			known = append(known, data)
		}
	}
	return known
}

// chain returns a question with the answers that are known, in as many packets as they
// need (RFC 6762, 7.2).
func chain(question wire.Question, known []wire.Record) (packets [][]byte) {
	builder := wire.NewQuery()
	builder.Question(question)
	for _, data := range known {
		if !builder.Answer(data) {
			builder.Truncate()
			packets = append(packets, builder.Bytes())
			builder = wire.NewQuery()
			builder.Answer(data)
		}
	}
	return append(packets, builder.Bytes())
}
