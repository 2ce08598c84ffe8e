// Package inventory knows which objects exist because of a Configuration or an
// Instance. The list lives in the parent's own status, as [v0.ResourceStatus];
// here is its arithmetic.
//
// Always: what is in the list and no longer wanted is pruned before it leaves
// the list. Never: a client, a clock.
package inventory
