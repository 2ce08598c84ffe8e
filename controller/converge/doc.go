// Package converge brings the objects of one parent, a Configuration or an
// Instance, to what was rendered for it. A pass resolves the rendered objects
// (plan.Desire), reads from the watches what exists, plans (plan.Compute), sends
// the requests (apply.Client.Do), and returns an [Outcome].
//
// The reconcilers act on the flags of an Outcome as follows. Where several are
// set, the first line applies:
//
//	| flag         | set when                                           | objects | status                     | next pass                       |
//	|--------------|----------------------------------------------------|---------|----------------------------|---------------------------------|
//	| Announce     | an object outside the parent's namespace is        | not     | finalizer, then Resources; | at once, in the same reconcile  |
//	|              | created that the inventory does not know           | touched | no conditions              |                                 |
//	| Pending      | the watch of a kind has not synced, or an object   | applied | not written                | when the watch has synced, or   |
//	|              | changed between the plan and the request           | so far  |                            | after RequeueAfter              |
//	| Problems     | something could not be rendered, resolved, watched,| others  | Applied=False with the     | back-off if a problem heals,    |
//	|              | applied or deleted; or an object is contended      | applied,| first problem's reason     | else the next change            |
//	|              |                                                    | none    |                            |                                 |
//	|              |                                                    | pruned  |                            |                                 |
//	| Held         | MayChange said no to a change of what exists       | only    | Applied=False,             | when the rollout gate opens     |
//	|              |                                                    | repaired| RolloutWaiting             |                                 |
//	| none         |                                                    | as      | Applied=True               | the next change                 |
//	|              |                                                    | rendered|                            |                                 |
//
// RequeueAfter is set besides any of them: when the back-off of a terminated Pod
// ends, a contended object may be repaired again, contention is over, or an object
// changed under the plan.
//
// Always: one failing object does not stop its siblings; nothing is pruned in a
// pass with problems; an object that garbage collection cannot remove is in the
// inventory before it is created. Never: a status, a template.
package converge
