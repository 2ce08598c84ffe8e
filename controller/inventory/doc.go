// Package inventory handles inventories. An inventory lists the objects that exist
// for a Configuration or an Instance; its status holds it as [v0.ResourceStatus].
//
// Always: an object that is no longer desired is pruned or released before it leaves the list.
// Never: a client, a clock.
package inventory
