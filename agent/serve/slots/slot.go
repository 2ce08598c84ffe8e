package slots

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// phase is the patch in flight for a slot, if any. There is at most one.
type phase int

const (
	settled phase = iota
	claiming
	releasing
)

func (p phase) String() string {
	return [...]string{"settled", "claiming", "releasing"}[p]
}

// slot is what this node knows about one slot. A zero owner means none.
type slot struct {
	// owner is the owner in the record, except while unrecorded.
	owner v0.Owner
	// held is the owner as which a container of this node has the slot or may have it.
	// It is set by an answer, by an observation and, to be safe, when a record names
	// this node unexpectedly. Only an observation clears it.
	held v0.Owner
	// assumed means that only a record says so. A conflict is then not reported.
	assumed bool
	// unrecorded means that owner is held although the record does not show it yet.
	unrecorded bool
	// conflicting means that the record names another owner than held; reported that a
	// [Report] says so.
	conflicting, reported bool
	// contradicted means that the last observation of a container with the slot
	// contradicted the record; since is when observations began to say the same. A
	// negative value means that there was none.
	contradicted bool
	since        time.Duration
	// superseded means that the slot's virtual ID was given to a later container with
	// another slot.
	superseded bool

	phase phase
	// want is the owner that a claim writes. It is set while one is in flight.
	want v0.Owner
	// sent is the version of the Instance that was known when the last patch was sent.
	sent uint64
	// uncertainRelease is the version for which a release of unknown outcome was sent, by this
	// agent or an earlier one. The release may still be applied until the Instance has
	// a later version.
	uncertainRelease uint64
	// released is like uncertainRelease, but stays when a container is known to have the slot. A
	// release that arrives so late empties the record of a slot in use.
	released uint64
	// retryAt is when the claim of an unrecorded owner is repeated, and retries is how
	// many patches of the slot have failed since one of the Instance was written.
	retryAt time.Duration
	retries int

	// touched is the generation of the last call naming the slot or of its last
	// settled patch.
	touched Generation
	// asked is when an Allocate for the slot was last received or answered. A negative
	// value means never.
	asked time.Duration
	// answered is when this agent last gave the slot to a container as held.
	answered time.Duration
}

// hold sets as which owner a container has the slot, or may have it. What is known of
// the former one ends.
func (s *slot) hold(owner v0.Owner, assumed bool) {
	if owner != s.held {
		s.answered, s.since = never, never
		s.superseded = s.superseded && owner.Free()
	}
	s.held, s.assumed = owner, assumed
}

// prove records that the kubelet has named the slot as that of a container. An agent that
// had sent a release would not have given the slot away.
func (s *slot) prove() { s.assumed, s.uncertainRelease = false, 0 }

func (s *slot) free() bool { return s.owner.Free() }
func (s *slot) busy() bool { return s.phase != settled }

// ending reports whether the slot is being released because no container has it.
func (s *slot) ending() bool { return s.phase == releasing && !s.unrecorded }

// forgetRecord applies the deletion of the record: what a container has is claimed
// again if the Instance is created again.
func (s *slot) forgetRecord() {
	s.owner, s.unrecorded = s.held, !s.held.Free()
	s.conflicting, s.reported, s.uncertainRelease, s.released = false, false, 0, 0
}

// instance is what this node knows about one Instance.
type instance struct {
	name string
	// group is that of the Instance's Configuration, or nil if that is not known.
	group *group

	// As published by the discovering half; valid only if published.
	published bool
	shared    bool
	capacity  int
	online    bool

	// As recorded in the API server. version is kept after a deletion.
	recorded bool
	version  uint64
	usage    map[int]v0.Owner
	place    place
	// gone means that the Instance was deleted. left means that the record is no longer
	// kept up to date, because the Instance does not have this node's label.
	gone, left bool
	// restoring are the slots that other nodes owned when the Instance was deleted. Their
	// agents write the owners again, unless the containers have terminated. No call gets such a
	// slot before restoredAt, which is set when the Instance has been created again.
	restoring  map[int]bool
	restoredAt time.Duration
	// older counts consecutive responses with a version older than one that was known
	// when the request was sent; see [Machine.record].
	older int

	slots  map[int]*slot
	roster *roster
	probe  probe
	summary
}

// slot returns a slot, and adds it if necessary.
func (i *instance) slot(number int) *slot {
	s := i.slots[number]
	if s == nil {
		s = &slot{asked: never, answered: never, since: never}
		i.slots[number] = s
	}
	return s
}

// recordedAfter reports whether a record is known that is later than a version. A response
// that the Instance did not exist, to a request that was sent at that version, says nothing
// about such a record: the Instance may have been created again. If it was deleted only
// then, the watch shows that, or the next request.
func (i *instance) recordedAfter(version uint64) bool { return i.recorded && i.version > version }

// releaseUncertain reports whether a release may still reach the API server. Such a slot is
// allocated again only after another release, which makes the first one fail.
func (i *instance) releaseUncertain(s *slot) bool {
	return s.uncertainRelease > 0 && i.version <= s.uncertainRelease
}

// yields reports whether only an old record says that a container has an unrecorded slot,
// which another node had when the Instance was deleted. That node goes first.
func (i *instance) yields(number int, s *slot) bool {
	return s.unrecorded && s.assumed && i.restoring[number]
}

// claimAt returns when the claim of an unrecorded slot may be sent.
func (i *instance) claimAt(number int, s *slot) time.Duration {
	if i.yields(number, s) {
		return max(s.retryAt, i.restoredAt)
	}
	return s.retryAt
}

// watched reports whether changes of the record are seen. Until the first record, the
// device counts as free.
func (i *instance) watched() bool { return !i.gone && !i.left }

// numbers returns the known slots, sorted.
func (i *instance) numbers() []int {
	return slices.Sorted(maps.Keys(i.slots))
}

// usable reports whether a container may be given a free slot, as far as this node
// knows. The number of owners may still be at the capacity.
func (i *instance) usable(number int, s *slot) bool {
	return s.free() && !s.busy() && number < i.capacity && !i.restoring[number] &&
		i.published && (!i.shared || i.watched() && !i.probe.failing)
}

// ready reports whether this node owns a slot and can give it to a container without
// a free slot being needed.
func (i *instance) ready(number int, s *slot) bool {
	switch {
	case s.conflicting || !i.published || i.yields(number, s):
		return false
	case !i.shared:
		return true
	}
	return i.watched() && !(i.probe.failing && (s.free() || s.unrecorded || i.releaseUncertain(s)))
}

// CompareUses orders uses by resource and ID.
func CompareUses(a, b Use) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.ID, b.ID))
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Slot, b.Slot))
}
