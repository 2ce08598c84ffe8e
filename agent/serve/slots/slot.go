package slots

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// state is what the record and the containers of this node say of a slot. It follows from
// the slot's fields, so that there are no others. A slot usually goes from free to recorded
// when its claim is written, to inUse when the call is answered, back to recorded when an
// observation shows that the container has terminated, and to free when that is written.
type state int

const (
	// free means that neither the record nor a container has an owner.
	free state = iota
	// recorded means that the record names an owner, but that no container of this node has
	// the slot: it is another node's, or was claimed for a call, or is to be released.
	recorded
	// adopted means that the record names this node, but not because of this agent. A
	// container may have the slot until an observation says so or not.
	adopted
	// inUse means that a container has the slot as the owner in the record.
	inUse
	// unrecorded means that a container has the slot, and that the record names nobody.
	unrecorded
	// doubtful means that a container may have the slot, but that the record names another
	// owner. One of the two may be out of date.
	doubtful
	// conflicting means that a container has the slot, but that the record names another
	// owner. The slot stays unhealthy until a user corrects the record.
	conflicting
)

func (s state) String() string {
	return [...]string{"free", "recorded", "adopted", "in use", "unrecorded", "doubtful", "conflicting"}[s]
}

// contested reports whether a container has a slot, or may have it, although the record
// names another owner.
func (s state) contested() bool { return s == doubtful || s == conflicting }

// patchKind says which patch is in flight for a slot. There is at most one.
type patchKind int

const (
	noPatch patchKind = iota
	claiming
	releasing
)

// patch is what a request in flight does to a slot.
type patch struct {
	kind patchKind
	// owner is the one that a claim writes or that a release removes.
	owner v0.Owner
	// version is that of the Instance that was known when the request was sent.
	version uint64
}

const anyVersion = math.MaxUint64

// slot is what this node knows about one slot. A zero owner means none.
type slot struct {
	// recorded is the owner in the record, when no patch was in flight. It is none if this
	// node corrects the record: see [Machine.takeOver].
	recorded v0.Owner
	// held is the owner as which a container of this node has the slot or may have it.
	// It is set by an answer, by an observation and, to be safe, when a record names
	// this node unexpectedly. Only an observation clears it.
	held v0.Owner
	// assumed means that only a record says so.
	assumed bool
	// superseded means that the slot's virtual ID was given to a later container with
	// another slot.
	superseded bool
	// since is when observations began to list the slot's container while the record
	// agrees, or while it does not. A negative value means that there was none.
	since time.Duration

	patch patch
	// lateRelease is the latest version of the Instance for which a release was sent whose
	// outcome is unknown: it may still be applied to that version. An earlier agent may have
	// sent one for anyVersion.
	lateRelease uint64

	// generation is that of the last call naming the slot or of its last settled patch.
	generation Generation
	// asked is when an Allocate for the slot was last received or answered. A negative
	// value means never.
	asked time.Duration
	// answered is when this agent last gave the slot to a container as held.
	answered time.Duration
}

func (s *slot) state() state {
	switch {
	case s.held.Free() && s.recorded.Free():
		return free
	case s.held.Free():
		return recorded
	case s.recorded.Free():
		return unrecorded
	case s.recorded != s.held && s.assumed:
		return doubtful
	case s.recorded != s.held:
		return conflicting
	case s.assumed:
		return adopted
	}
	return inUse
}

// owner returns who has the slot: as the record says or, as long as it says nothing, as
// the container or the release in flight does.
func (s *slot) owner() v0.Owner {
	switch {
	case s.ending():
		return s.patch.owner
	case s.recorded.Free():
		return s.held
	}
	return s.recorded
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

// adopt records that an earlier agent of this node has claimed the slot, or has given it to a
// container just before this one started. So a container may have it until an observation,
// and the earlier agent's release may still reach the API server, at any version.
func (s *slot) adopt(owner v0.Owner, now time.Duration) {
	s.hold(owner, true)
	s.asked, s.lateRelease = now, anyVersion
}

// prove records that the kubelet has named the slot as that of a container. An agent that
// had sent a release would not have given the slot away, so none is sent after a version.
func (s *slot) prove(version uint64) {
	s.assumed = false
	s.boundRelease(version)
}

// boundRelease records that an earlier agent has sent no release for a later version.
func (s *slot) boundRelease(version uint64) {
	if s.lateRelease == anyVersion {
		s.lateRelease = version
	}
}

func (s *slot) free() bool { return s.owner().Free() }
func (s *slot) busy() bool { return s.patch.kind != noPatch }

func (s *slot) contested() bool { return s.state().contested() }

// ending reports whether the slot is being released because no container has it.
func (s *slot) ending() bool { return s.patch.kind == releasing && s.held.Free() }

// want returns the owner that a claim in flight writes.
func (s *slot) want() v0.Owner {
	if s.patch.kind == claiming {
		return s.patch.owner
	}
	return v0.Owner{}
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
	// awaited are the slots that other nodes owned when the Instance was deleted. Once it has
	// been created again, they are not given before restoredAt, so that the others can write
	// their owners again.
	awaited    map[int]bool
	restoredAt time.Duration

	slots map[int]*slot
	list  *idList
	retry retry
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

// releaseUncertain reports whether a release may still free the slot. Such a slot is
// allocated again only after another release, which makes the first one fail.
func (i *instance) releaseUncertain(s *slot) bool {
	return (s.held.Free() || s.state() == adopted) && s.lateRelease > 0 && i.version <= s.lateRelease
}

// held reports whether a container has one of some slots, or may have it.
func (i *instance) held(numbers []int) bool {
	return slices.ContainsFunc(numbers, func(number int) bool { return i.slots[number] != nil && !i.slots[number].held.Free() })
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
	return s.free() && !s.busy() && number < i.capacity && i.published && (!i.shared || i.watched()) && !i.suspended() && !i.awaited[number]
}

// ready reports whether this node owns a slot and can give it to a container without
// a free slot being needed.
func (i *instance) ready(number int, s *slot) bool {
	switch {
	case s.contested() || !i.published || i.othersFirst(number, s):
		return false
	case !i.shared:
		return true
	}
	return i.watched() && !(i.suspended() && (s.free() || s.state() == unrecorded || i.releaseUncertain(s)))
}

// CompareUses orders uses by resource and ID.
func CompareUses(a, b Use) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.ID, b.ID))
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Slot, b.Slot))
}
