package watch

import "akri.sh/akri/controller/plan"

// Observed is what planning needs to know of the object.
func (o *Object) Observed() plan.Observed {
	return plan.Observed{
		UID:         o.UID,
		Owner:       o.Owner,
		Parent:      o.Parent,
		Terminating: o.DeletionTimestamp != nil,
		Fields:      o.Fields,
		Ended:       o.Ended,
		Reason:      o.Reason,
	}
}
