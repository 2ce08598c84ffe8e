package slots

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// phase says whether a patch of a slot is under way. At most one is.
type phase int

const (
	settled phase = iota
	claiming
	releasing
)

func (p phase) String() string {
	return [...]string{"settled", "claiming", "releasing"}[p]
}

// slot is what this node knows of one slot.
type slot struct {
	// owner is the record's word, except while unwritten.
	owner v0.Owner
	phase phase
	// granted: a container of this node has the slot, or may have. Set by an
	// answer, by a witness and, as the careful guess, when the first record
	// seen names this node; cleared by a witness only.
	granted bool
	// unwritten: owner is this node though the record does not say so yet.
	unwritten bool
	// doubt is the version for which a release of unknown outcome was made. It
	// may still be applied, however late, until the Instance has a newer one.
	doubt uint64
	// contradicted: granted, but the record names somebody else.
	contradicted bool

	// touched is the generation of the last call naming the slot or of its last
	// settled patch.
	touched Generation
	// named is when the last call named the slot, asked when the last one that
	// wanted it for a container came or was answered; negative: never.
	named, asked time.Duration
	// retryAt is when an unwritten owner is written again.
	retryAt time.Duration

	// listed: the slot is in the list the kubelet has. retiring since retiredAt:
	// it is listed only until it has been quiet for long enough.
	listed    bool
	retiring  bool
	retiredAt time.Duration
}

func (s *slot) free() bool            { return s.owner.Free() }
func (s *slot) busy() bool            { return s.phase != settled }
func (s *slot) mine(node string) bool { return s.owner == v0.Owner{Node: node} }

// instance is what this node knows of one Instance.
type instance struct {
	name string

	// What the discovering half says; meaningless unless published.
	published bool
	shared    bool
	capacity  int
	online    bool

	// What the API server says. version outlives the record: it only grows.
	recorded bool
	version  uint64
	usage    map[int]v0.Owner
	// left means that the record is no longer kept up to date, because the
	// Instance does not have this node's label.
	left bool

	slots map[int]*slot

	// advertised is the list sent last; nil before the first and after the end
	// of the resource.
	advertised []Health
}

// slot returns a slot, which is made if need be.
func (i *instance) slot(number int) *slot {
	s := i.slots[number]
	if s == nil {
		s = &slot{named: -Quiet, asked: -Quiet}
		i.slots[number] = s
	}
	return s
}

// doubtful tells whether a release may still arrive at the API server. Such a
// slot is given again only after another release, whose write outdates the first.
func (i *instance) doubtful(s *slot) bool { return s.doubt > 0 && i.version <= s.doubt }

// numbers returns the slots known, in order.
func (i *instance) numbers() []int {
	return slices.Sorted(maps.Keys(i.slots))
}

// call is a request of the kubelet that is not answered yet.
type call struct {
	id       Call
	instance string
	slots    []int
}

// Compare orders slots by Instance and number.
func Compare(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Slot, b.Slot))
}
