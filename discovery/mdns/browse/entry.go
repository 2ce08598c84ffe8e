package browse

import (
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// entry is all that a link knows about the records of one name and type.
type entry struct {
	name    wire.Name
	kind    wire.Type
	records map[wire.Record]*cachedRecord
	// types means that the records are types of services.
	types bool
	// sweep is the last sweep that needed the entry.
	sweep int

	// since is when the records were first needed.
	since time.Time
	// asked counts the questions, and due is when to ask the next one; zero means never.
	asked int
	due   time.Time
	// late means that a TXT record has not been received within textWait.
	late bool
}

// capacity is how many records the entry may have.
func (e *entry) capacity() int {
	switch {
	case e.kind != wire.PTR:
		return maxRecordsPerName
	case e.types:
		return maxTypes
	default:
		return maxServices
	}
}

// best returns the record of an SRV or TXT entry that counts: the newest that has not
// been replaced.
func (e *entry) best() *cachedRecord {
	var best *cachedRecord
	if e != nil {
		for _, r := range e.records {
			if best == nil || r.supersedes(best) {
				best = r
			}
		}
	}
	return best
}

// asking reports whether the question is asked by schedule: that for PTR records always, as
// there may be more of them, and others while there are no records.
func (e *entry) asking() bool {
	return e.kind == wire.PTR || len(e.records) == 0
}

// interval returns the time until the next question, after so many: they are asked after 0, 1,
// 3, 7, 15 seconds and so on, as each interval has to be at least twice the previous one (RFC
// 6762, 5.2).
func (e *entry) interval() time.Duration {
	return min(time.Second<<min(e.asked-1, 12), maxInterval)
}

// next returns when the entry needs attention: a question, or the end of a record.
func (e *entry) next() time.Time {
	var at time.Time
	if e.asking() {
		at = e.due
	}
	if e.kind == wire.TXT && len(e.records) == 0 && !e.late {
		at = deadline.Earliest(at, e.since.Add(textWait))
	}
	for _, r := range e.records {
		at = deadline.Earliest(at, r.refresh, r.removal())
	}
	return at
}
