// Package inventory is the arithmetic of inventories: the list of the objects that
// exist for a Configuration or an Instance, which its status holds as
// [v0.ResourceStatus].
//
// Always: an object that is no longer desired is pruned before it leaves the list.
// Never: a client, a clock.
package inventory
