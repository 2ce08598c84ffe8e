// Package publish makes the devices of this node visible as Instances.
//
// Pure functions decide what to do about a device or an Instance (intent.go: the
// desired Instance; decide.go: the action; capacity.go: the slots to list). The
// [Publisher] carries out the decisions.
//
// Several nodes see a shared device, and each of their agents applies the same
// Instance (server-side apply): the identity fields and its own entry in nodes, but
// never a slot. The first node in nodes is the Instance's author. The others keep
// its description of the device, and correct the Instance only if it contradicts the
// Configuration for [AuthorPatience]. Two agents that see a device differently
// therefore never overwrite each other in turns.
//
// Always: an Instance that matches the desired one is not written. Never: an
// Instance is deleted while another node is listed, in whatever order requests
// arrive, unless its Configuration is gone; a device takes over another device's
// Instance.
package publish
