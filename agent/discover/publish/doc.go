// Package publish makes the devices of this node visible as Instances.
//
// What is to be done about a device or an Instance is decided by pure functions
// (intent.go: what an Instance should say; decide.go: what to do about it;
// capacity.go: which slots it should list). The [Publisher] carries it out.
//
// Several nodes see a shared device, and each of their agents writes the same
// Instance by server-side apply: the identity fields and its own entry of nodes,
// never a slot. The first of nodes is the Instance's author: the others follow
// what it says of the device, and only where the Configuration is contradicted
// for [AuthorPatience] do they put it right themselves. So two agents that see a
// device differently do not take turns in correcting each other.
//
// Always: an Instance that is as it should be is not written. Never: an
// Instance is deleted while another node is listed, whatever the order of
// requests, unless its Configuration is gone; a device takes over the Instance
// of another one.
package publish
