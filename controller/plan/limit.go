package plan

import (
	"fmt"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
)

const (
	// MaxObjects is how many objects a Configuration or an Instance may have. They are
	// all listed in its status, and etcd stores at most 1.5 MiB of each object.
	MaxObjects = 1000
	// MaxRecorded bounds the inventory of a parent, with the objects that are no
	// longer rendered and could not be deleted yet.
	MaxRecorded = MaxObjects * 3 / 2
	// MaxReason bounds, in bytes, the reasons in an inventory of more than FewObjects.
	// Together with MaxRecorded it keeps a status below etcd's limit.
	MaxReason = 64
	// FewObjects is how many objects have their reasons recorded in full.
	FewObjects = 100
)

// tooManyError returns the error for a parent with more than MaxObjects objects.
func tooManyError(parent ownership.Parent, objects int) *problem.Error {
	what := "device"
	if parent.Kind() == v0.ConfigurationKind {
		what = "Configuration"
	}
	return &problem.Error{
		Reason: v0.ReasonRefused,
		Mistake: finding.Mistake{
			Cause: fmt.Sprintf("%d objects for one %s exceed the limit of %d, so none is applied", objects, what, MaxObjects),
			Hint:  "use fewer templates, or shorter lists in for-each",
		},
	}
}
