// Package converge brings the objects of one parent, a Configuration or an
// Instance, to their desired state. A pass resolves the rendered objects
// (plan.Desire), reads from the watches what exists, plans (plan.Compute), sends
// the requests (apply.Client.Do), and returns an [Outcome]. If it is about to create
// objects outside the parent's namespace that the inventory does not know, it first adds
// the finalizer and has them recorded.
//
// The reconcilers act on the flags of an Outcome as follows. Where several are
// set, the first line applies:
//
//	flag      set when
//	--------  ------------------------------------------------------------------
//	Pending   the watch of a kind has not synced, or an object changed between
//	          the plan and the request, not more than three times in a row
//	Problems  something could not be rendered, resolved, watched, applied or
//	          deleted, or an object is contended
//	Held      Request.MayChange refused a change of what exists
//
//	flag      objects               status                    next pass
//	--------  --------------------  ------------------------  --------------------
//	Pending   applied so far,       not written; the next     when the watch has
//	          none pruned           pass starts from the      synced, or after
//	                                Resources                 RequeueAfter
//	Problems  applied but for the   Applied=False with the    with back-off if a
//	          failing, none pruned  first problem's reason    problem is retryable
//	Held      repaired only         Applied=False,            when the rollout
//	                                RolloutWaiting            gate opens
//	none      as rendered           Applied=True              on the next change
//
// RequeueAfter may be set with any of them: when the back-off of a terminated Pod
// ends, a contended object may be repaired again, contention is over, or an object
// changed under the plan.
//
// Always: one failing object does not stop its siblings, and one failing deletion no
// other; nothing is pruned if something could not be applied; an object that garbage
// collection cannot remove is in the inventory before it is created. Never: a status, a template.
package converge
