package browse

import (
	"cmp"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// setKey identifies a set of records.
type setKey struct {
	name string // in lower case
	kind wire.Type
}

// cachedRecord is a record in the cache.
type cachedRecord struct {
	data wire.Record
	// created is when the record was first received, received when it last was.
	created, received time.Time
	// expires is the end of the time to live.
	expires time.Time
	// final means that the record is removed when it expires, and not verified, because
	// of a goodbye or of a newer record.
	final bool

	// refresh is when to ask for the record next.
	refresh time.Time
	// attempts counts the questions since the record was last received.
	attempts int
	// jitter is 0 to 2 % of the time to live.
	jitter float64
}

// identify returns what distinguishes a record from others of its name and type.
func identify(data wire.Record) wire.Record {
	return wire.Record{Target: wire.Name(data.Target.Key()), Port: data.Port, Priority: data.Priority, Text: data.Text, Address: data.Address}
}

// renew records that the record was received again.
func (r *cachedRecord) renew(now time.Time, data wire.Record) {
	ttl := min(max(time.Duration(data.TTL)*time.Second, minTTL), maxTTL)
	r.data.Flush, r.data.TTL = data.Flush, uint32(ttl/time.Second)
	r.received, r.expires = now, now.Add(ttl)
	r.final, r.attempts = false, 0
	r.plan(now)
}

// end makes the record expire soon, unless it does so anyway.
func (r *cachedRecord) end(now time.Time) {
	if at := now.Add(goodbyeDelay); !r.final || at.Before(r.expires) {
		r.final, r.expires, r.refresh = true, at, time.Time{}
	}
}

// verify begins to ask for a record that may be out of date, unless that is done.
func (r *cachedRecord) verify(now time.Time) {
	if !r.final && r.attempts < len(points) {
		r.expires, r.attempts = now, len(points)
		r.plan(now)
	}
}

// removal is when the record is removed, unless it is received before that.
func (r *cachedRecord) removal() time.Time {
	if r.final {
		return r.expires
	}
	return r.expires.Add(verifyWindow)
}

// points are the parts of the time to live after which RFC 6762, 5.2, asks for a record.
var points = [...]float64{.80, .85, .90, .95}

// plan sets the time of the next question, which is not before earliest.
func (r *cachedRecord) plan(earliest time.Time) {
	r.refresh = r.expires
	if r.attempts < len(points) {
		ttl := float64(r.expires.Sub(r.received))
		r.refresh = r.received.Add(time.Duration((points[r.attempts] + r.jitter) * ttl))
	}
	r.refresh = deadline.Latest(r.refresh, earliest)
}

// isDue reports whether to ask for the record, if anything is asked now.
func (r *cachedRecord) isDue(now time.Time) bool {
	return !r.final && !r.refresh.After(now.Add(lookahead))
}

// asked records that a question for the record was sent.
func (r *cachedRecord) asked(now time.Time) {
	if r.isDue(now) {
		r.attempts++
		r.plan(now.Add(repeatInterval))
	}
}

// known reports whether to list the record as a known answer: more than half of its time
// to live must remain (RFC 6762, 7.1).
func (r *cachedRecord) known(now time.Time) bool {
	return !r.final && r.expires.Sub(now) > r.expires.Sub(r.received)/2
}

// supersedes reports whether the record counts rather than another one of its name and
// type. The order is total, so that it does not depend on the order of a map.
func (r *cachedRecord) supersedes(other *cachedRecord) bool {
	if r.final != other.final {
		return other.final
	}
	return cmp.Or(
		r.created.Compare(other.created),
		cmp.Compare(other.data.Priority, r.data.Priority),
		cmp.Compare(other.data.Target, r.data.Target),
		cmp.Compare(other.data.Port, r.data.Port),
		cmp.Compare(other.data.Text, r.data.Text),
	) > 0
}
