package ownership

import "k8s.io/apimachinery/pkg/types"

// Verdict says whose an object is, from the view of one parent.
type Verdict int

const (
	// Foreign objects belong to another owner.
	Foreign Verdict = iota
	// Former objects belong to an earlier parent of the same name, and are being
	// deleted after it.
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

// Adoption says which unowned objects a parent makes its own.
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

// Claim is what a parent knows about an object that it wants.
type Claim struct {
	Parent Parent
	// Applied is the UID of the object in the parent's inventory; empty if it is
	// not there.
	Applied types.UID
	Adopt   Adoption
}

// Judge says whose an object is. The table is in the package comment.
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
