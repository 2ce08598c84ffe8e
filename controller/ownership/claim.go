package ownership

import "k8s.io/apimachinery/pkg/types"

// Verdict classifies the owner of an object from the view of one parent.
type Verdict int

const (
	// Foreign objects belong to another owner.
	Foreign Verdict = iota
	// Former objects belong to an earlier parent of the same name, which no longer
	// exists: garbage collection deletes them.
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
	// AdoptApplied adopts objects that the controller has applied before for a parent
	// of this name, such as those it orphaned.
	AdoptApplied
	// AdoptAllApplied adopts objects that the controller has applied before for
	// any parent. It is for dry runs: the name of a made-up parent is not known.
	AdoptAllApplied
	// AdoptAny adopts every unowned object.
	AdoptAny
)

// Claim is a parent's claim to an object that it desires.
type Claim struct {
	Parent Parent
	// Applied is the UID of the object in the parent's inventory; empty if it is
	// not there. Others can write inventories, so it proves nothing by itself.
	Applied types.UID
	// Remembered reports that this process has applied the object of that UID for
	// the parent.
	Remembered bool
	Adopt      Adoption
}

// Judge returns whose an object is, by the table in the package comment.
func (c Claim) Judge(state State) Verdict {
	sameName := state.Parent == c.Parent.ByName()
	switch {
	case state.Owner != "" && state.Owner == c.Parent.UID:
		return Ours
	case state.Owner != "" && sameName && (state.Terminating || state.Confirmed):
		return Former
	case state.Owner != "":
		return Foreign
	case state.Confirmed && !sameName:
		return Unowned // applied for another parent since
	case c.Applied != "" && state.UID == c.Applied && (state.Applied || c.Remembered):
		return Ours // its owner reference was removed
	}
	return Unowned
}

// Owns reports whether the parent may write an object: it is the parent's, or it
// is unowned and the claim adopts it.
func (c Claim) Owns(state State) bool {
	switch c.Judge(state) {
	case Ours:
		return true
	case Unowned:
		return c.adopts(state)
	}
	return false
}

func (c Claim) adopts(state State) bool {
	switch c.Adopt {
	case AdoptAny:
		return true
	case AdoptAllApplied:
		return state.Applied
	case AdoptApplied:
		return state.Applied && state.Confirmed && state.Parent == c.Parent.ByName()
	}
	return false
}

// Deletes reports whether the parent may delete an object that it no longer
// desires: the object itself must say that the parent owns it.
func (c Claim) Deletes(state State) bool {
	return state.Owner != "" && state.Owner == c.Parent.UID
}
