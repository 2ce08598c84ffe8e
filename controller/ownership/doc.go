// Package ownership decides who owns an object, for the planner, the client, the
// watches, the sweep, the admission webhook and kubectl akri.
//
// A [Parent] marks the objects that it applies ([Mark]). [Of] reads the marks of
// an existing object, and [Claim.Judge] compares them with what a parent knows:
//
//	| controller owner | owner label | also                            | verdict |
//	|------------------|-------------|---------------------------------|---------|
//	| any              | any         | its UID is in the inventory     | Ours    |
//	| the parent       | any         |                                 | Ours    |
//	| another          | any         | terminating, labels name parent | Former  |
//	| another          | any         |                                 | Foreign |
//	| none             | the parent  |                                 | Ours    |
//	| none             | another     | terminating, labels name parent | Former  |
//	| none             | another     |                                 | Foreign |
//	| none             | none        |                                 | Unowned |
//
// An unowned object belongs to the parent only if its [Adoption] says so:
// [Claim.Owns].
//
// Always: the same object and claim give the same verdict. Never: a client, a
// request.
package ownership
