// Package ownership decides who owns an object, for the planner, the client, the
// watches, the sweep, the admission webhook and kubectl akri.
//
// A [Parent] marks the objects that it applies ([Mark]). [Read] reads the marks of
// an existing object, and [Claim.Judge] compares them with what a parent knows:
//
//	| owner            | also                                          | verdict |
//	|------------------|-----------------------------------------------|---------|
//	| the parent       |                                               | Ours    |
//	| another          | it is a parent of the same name, or the       | Former  |
//	|                  | object is terminating and labels name the parent |      |
//	| another          |                                               | Foreign |
//	| none             | applied for another parent since              | Unowned |
//	| none             | its UID is in the inventory, and the controller | Ours  |
//	|                  | is a field manager or remembers the object    |         |
//	| none             |                                               | Unowned |
//
// The owner is the controller owner reference or, in another namespace, the owner
// label while the controller manages it. A label that somebody else has set is not
// believed, and neither is an inventory alone. An unowned object belongs to the
// parent only if its [Adoption] says so: [Claim.Owns]. Deletion needs more:
// [Claim.Deletes].
//
// Always: the same object and claim give the same verdict. Never: a client, a
// request.
package ownership
