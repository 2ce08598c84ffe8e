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

// slot is what this node knows about one slot.
type slot struct {
	// owner is the owner in the record, except while unwritten.
	owner v0.Owner
	phase phase
	// granted means that a container of this node has the slot or may have it. It
	// is set by an answer, by an observation and, to be safe, when the first
	// record names this node. Only an observation clears it.
	granted bool
	// unwritten means that owner is this node although the record does not show it
	// yet.
	unwritten bool
	// doubt is the version for which a release of unknown outcome was sent. The
	// release may still be applied until the Instance has a later version.
	doubt uint64
	// contradicted means that the slot is granted but the record names another
	// owner.
	contradicted bool

	// touched is the generation of the last call naming the slot or of its last
	// settled patch.
	touched Generation
	// named is when a call last named the slot. asked is when an Allocate for it
	// was last received or answered. Negative values mean never.
	named, asked time.Duration
	// retryAt is when the claim of an unwritten owner is repeated.
	retryAt time.Duration

	// listed means that the slot is in the kubelet's list. retiring means that,
	// since retiredAt, it is waiting to be removed from the list; see [Quiet].
	listed    bool
	retiring  bool
	retiredAt time.Duration
}

func (s *slot) free() bool            { return s.owner.Free() }
func (s *slot) busy() bool            { return s.phase != settled }
func (s *slot) mine(node string) bool { return s.owner == v0.Owner{Node: node} }

// instance is what this node knows about one Instance.
type instance struct {
	name string

	// As published by the discovering half; valid only if published.
	published bool
	shared    bool
	capacity  int
	online    bool

	// As recorded in the API server. version only grows, so it is kept even without
	// a record.
	recorded bool
	version  uint64
	usage    map[int]v0.Owner
	// left means that the record is no longer kept up to date, because the
	// Instance does not have this node's label.
	left bool

	slots map[int]*slot

	// advertised is the last list; nil before the first one and after the resource
	// was withdrawn.
	advertised []Health
}

// slot returns a slot, and adds it if necessary.
func (i *instance) slot(number int) *slot {
	s := i.slots[number]
	if s == nil {
		s = &slot{named: -Quiet, asked: -Quiet}
		i.slots[number] = s
	}
	return s
}

// doubtful reports whether a release may still reach the API server. Such a slot is
// allocated again only after another release, which makes the first one fail.
func (i *instance) doubtful(s *slot) bool { return s.doubt > 0 && i.version <= s.doubt }

// numbers returns the known slots, sorted.
func (i *instance) numbers() []int {
	return slices.Sorted(maps.Keys(i.slots))
}

// call is a request of the kubelet that has not been answered.
type call struct {
	id       Call
	instance string
	slots    []int
}

// Compare orders slots by Instance and number.
func Compare(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Slot, b.Slot))
}
