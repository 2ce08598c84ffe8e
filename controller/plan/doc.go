// Package plan computes the steps that bring the objects of one parent, a
// Configuration or an Instance, to the desired state.
//
// [Desire] turns rendered objects into desired ones. [Compute] takes three lists,
// what is desired, what is observed, and what was recorded when it was last applied,
// and returns a [Step] for each object. The order of the cases in rules.go is the
// policy.
//
// Always: the same input gives the same plan; a desired object gets exactly one
// step; nothing is deleted when the rendering was incomplete. Never: a client, a
// clock, a request.
package plan
