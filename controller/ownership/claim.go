package ownership

import "k8s.io/apimachinery/pkg/types"

// Verdict classifies the owner of an object from the view of one parent.
type Verdict int

const (
	// Foreign objects belong to another owner.
	Foreign Verdict = iota
	// Former objects belong to an earlier parent of the same name, and are being
	// deleted.
	Former
	// Unowned objects have no owner: they were orphaned, or were not created by
	// the controller.
	Unowned
	// Ours are the parent's own objects.
	Ours
)

func (v Verdict) String() string {
	return [...]string{"foreign", "former", "unowned", "ours"}[v]
}

// Adoption selects the unowned objects that a parent adopts.
type Adoption int

const (
	// AdoptNone adopts nothing.
	AdoptNone Adoption = iota
	// AdoptApplied adopts objects that the controller has applied before, such as
	// those it orphaned.
	AdoptApplied
	// AdoptAny adopts every unowned object.
	AdoptAny
)

// Claim is a parent's claim to an object that it desires.
type Claim struct {
	Parent Parent
	// Applied is the UID of the object in the parent's inventory; empty if it is
	// not there.
	Applied types.UID
	Adopt   Adoption
}

// Judge returns whose an object is, by the table in the package comment.
func (c Claim) Judge(state State) Verdict {
	switch {
	case c.Applied != "" && state.UID == c.Applied:
		return Ours // even if its owner reference was removed
	case state.Owner == "":
		return Unowned
	case state.Owner == c.Parent.UID:
		return Ours
	case state.Terminating && state.Parent == c.Parent.ByName():
		return Former
	}
	return Foreign
}

// Owns reports whether the parent may write an object: it is the parent's, or it
// is unowned and the claim adopts it.
func (c Claim) Owns(state State) bool {
	switch c.Judge(state) {
	case Ours:
		return true
	case Unowned:
		return c.Adopt == AdoptAny || c.Adopt == AdoptApplied && state.Applied
	}
	return false
}
